/**
 * Serves the console: its page under every path of `/console/`, so that deep links work, and its hashed files. Needs neither
 * token nor stores, has no budget, and is not in the OpenAPI document. Implements `docs/contract/console.md`, its address and
 * content security policy.
 */
import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ServiceError } from '../../../kernel/errors.js';
import { readOnce } from '../../../kernel/files.js';
import { undocumented, type RestApp } from '../deps.js';
import { sendCompressed } from '../answers/accepted.js';
import { findConsole, readConsole, type ConsoleFile, type ConsolePage } from './console-build.js';

const nonceBytes = 18;
const oneYearImmutable = 'public, max-age=31536000, immutable';

/** Shown when the console was not built. */
const absentPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>The console is not built</title></head>
<body><h1>The console is not built</h1>
<p>The service runs, and its API answers under /api. This copy of it lacks the folder dist/console.
Run <code>npm ci &amp;&amp; npm run build</code> where it is installed, and reload this page.</p></body></html>
`;

export interface BuiltConsole {
  /** Sends a page. */
  page(name: ConsolePage): (request: FastifyRequest, reply: FastifyReply) => Promise<string>;
  /** A file by its name, or undefined. */
  asset(name: string): Promise<ConsoleFile | undefined>;
}

/** @param find where the build is; undefined when there is none */
export function openConsole(find: () => string | undefined = findConsole): BuiltConsole {
  const built = readOnce(find, readConsole);
  return {
    page: (name) => async (_request, reply) => {
      const found = await built();
      const nonce = randomBytes(nonceBytes).toString('base64');
      void reply.headers({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'content-security-policy': policy(nonce),
      });
      if (found !== undefined) return found.page(name, nonce);
      void reply.code(503);
      return absentPage;
    },
    asset: async (name) => (await built())?.assets.get(name),
  };
}

export function consoleRoutes(rest: RestApp, pages: BuiltConsole): void {
  const app = undocumented(rest);
  const config = { access: 'open' } as const;
  const sendAsset = async (request: FastifyRequest<{ Params: { name: string } }>, reply: FastifyReply) => {
    const file = await pages.asset(request.params.name);
    if (file === undefined) throw new ServiceError('not_found', 'no such file of the console; reload the page');
    void reply.headers({
      'content-type': file.contentType,
      'cache-control': oneYearImmutable,
      'content-security-policy': policy(),
    });
    return sendCompressed(request, reply, file);
  };
  const toConsole = async (_request: FastifyRequest, reply: FastifyReply) => reply.redirect('/console/', 302);

  const routes = {
    '/': async (request: FastifyRequest, reply: FastifyReply) => {
      // Browsers ask for HTML; programs send */* or nothing.
      if (request.headers.accept?.includes('text/html') !== true) throw new ServiceError('not_found', 'no such path');
      return toConsole(request, reply);
    },
    '/console': toConsole,
    '/console/': pages.page('index'),
    '/console/*': pages.page('index'),
  };
  for (const [url, handler] of Object.entries(routes)) {
    app.get(url, { exposeHeadRoute: true, config, handler });
  }
  app.get('/console/assets/:name', { exposeHeadRoute: true, config, handler: sendAsset });
}

/**
 * The content security policy: nothing from other hosts, no inline scripts, no frames. Mantine's style element needs the nonce.
 * @param nonce absent for files, whose policy applies to workers
 */
function policy(nonce?: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    nonce === undefined ? "style-src 'self'" : `style-src 'self' 'nonce-${nonce}'`,
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
