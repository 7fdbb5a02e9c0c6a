// node scripts/build.mjs OUT: builds the apps into OUT/console and OUT/portal, each file also compressed if that is smaller.
// The same sources give the same bytes.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { build } from 'vite';
import { root, settings } from './config.mjs';

const out = path.resolve(process.argv[2] ?? path.join(root, 'dist'));
const apps = ['console', 'portal'].filter((app) => fs.existsSync(path.join(root, `${app}.html`)));

function compress(file) {
  const bytes = fs.readFileSync(file);
  const variants = {
    br: zlib.brotliCompressSync(bytes, {
      params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 11, [zlib.constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }),
    gz: zlib.gzipSync(bytes, { level: 9 }),
  };
  for (const [suffix, compressed] of Object.entries(variants))
    if (compressed.length < bytes.length) fs.writeFileSync(`${file}.${suffix}`, compressed);
}

fs.rmSync(out, { recursive: true, force: true });
for (const app of apps) {
  const config = settings(app);
  config.logLevel = 'warn';
  config.build.outDir = path.join(out, app);
  await build(config);
  for (const entry of fs.readdirSync(config.build.outDir, { recursive: true })) {
    const file = path.join(config.build.outDir, String(entry));
    if (fs.statSync(file).isFile() && !/\.(br|gz)$/.test(file)) compress(file);
  }
}
