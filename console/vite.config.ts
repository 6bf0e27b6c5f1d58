/** How the console is bundled, and served while one edits it. */
import { env } from 'node:process';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** The service whose API `npm run dev:console` uses. */
const service = env.SVC_SERVER ?? 'http://127.0.0.1:8081';

const page = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Writes beside the pages which packages are in them, for the licences of a release. Paths from the repository. */
const packagesInside: Plugin = {
  name: 'packages-inside',
  generateBundle() {
    const modules = [...this.getModuleIds()].map((id) => /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1]);
    const folders = new Set(modules.flatMap((folder) => (folder === undefined ? [] : [relative(page('..'), folder)])));
    this.emitFile({ type: 'asset', fileName: 'packages.json', source: JSON.stringify([...folders].sort()) });
  },
};

export default defineConfig(({ command }) => ({
  base: '/console/',
  plugins: [react(), packagesInside],
  build: {
    target: ['chrome125', 'firefox128', 'safari18'],
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 2000,
    rolldownOptions: { input: ['index.html', 'docs.html'].map(page) },
  },
  // The service replaces it in each page. While one edits, there is no policy.
  ...(command === 'build' ? { html: { cspNonce: '__CSP_NONCE__' } } : {}),
  // With the Host of the page, which the service compares with its Origin.
  server: { proxy: { '/api': { target: service } } },
}));
