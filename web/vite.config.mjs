// For `npm run dev`. The build is scripts/build.mjs.
import { settings } from './scripts/config.mjs';

const server = process.env.POSTRIDER_SERVER ?? 'http://127.0.0.1:8090';
const proxied = { target: server, changeOrigin: false };

export default {
  ...settings('console'),
  base: '/',
  appType: 'spa',
  server: { proxy: { '/v1': proxied, '/console/session': proxied } },
};
