/** How the console is bundled, and served while one edits it. */
import { env } from 'node:process';
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** The service whose API `npm run dev:console` uses. */
const service = env.SVC_SERVER ?? 'http://127.0.0.1:8081';

const page = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export default defineConfig(({ command }) => ({
  base: '/console/',
  plugins: [react()],
  build: {
    target: ['chrome125', 'firefox128', 'safari18'],
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 2000,
    rolldownOptions: { input: ['index.html', 'docs.html'].map(page) },
  },
  // The service replaces it in each page. While one edits, there is no policy.
  ...(command === 'build' ? { html: { cspNonce: '__CSP_NONCE__' } } : {}),
  server: { proxy: { '/api': service } },
}));
