// Settings of Vite for both apps. `npm run dev` and the build share them.
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');

export function settings(app) {
  return {
    configFile: false,
    root,
    base: `/${app}/`,
    esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
    css: { modules: { generateScopedName: '[name]_[local]_[hash:base64:4]' } },
    build: {
      target: 'es2022',
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      sourcemap: false,
      reportCompressedSize: false,
      emptyOutDir: true,
      rollupOptions: { input: path.join(root, `${app}.html`) },
    },
  };
}
