/**
 * Serves what a machine needs to become a node: the script that installs the agent, and the agent's program with its checksums.
 * Needs no token, under the budget of such requests, and is not in the OpenAPI document. Implements
 * `docs/contract/joining.md#the-machines-side`.
 */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ServiceError } from '../../../kernel/errors.js';
import type { Budget } from '../checks/address-budget.js';
import { undocumented, type RestApp, type RestOptions } from '../deps.js';
import { joinAddresses } from '../join-command.js';
import { tuning } from '../tuning.js';
import type { AgentProgram } from './agent-program.js';
import { joinScript } from './join-script.js';

const immutable = 'public, max-age=31536000, immutable';

/** @param budget the budget of requests without a token */
export function machineRoutes(rest: RestApp, budget: Budget, options: RestOptions): void {
  const app = undocumented(rest);
  const latest = 'gateway-agent.cjs';
  const versioned = `gateway-agent-${options.version}.cjs`;

  async function program(): Promise<AgentProgram> {
    const found = await options.agentProgram();
    if (found === undefined) throw new ServiceError('not_found', "this service does not serve the agent's program");
    return found;
  }

  const handlers = {
    '/join.sh': async (request: FastifyRequest, reply: FastifyReply): Promise<string> => {
      const { sha256 } = await program();
      const script = joinScript({ ...joinAddresses(request, options), file: versioned, sha256 });
      void reply.headers({ 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' });
      return script;
    },
    '/agent/:file': async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      const { file } = request.params as { readonly file: string };
      const { bytes, sha256 } = await program();
      const isSums = file === 'SHA256SUMS';
      if (!isSums && file !== latest && file !== versioned) {
        throw new ServiceError('not_found', `no such file; this service serves ${versioned}`);
      }
      const etag = `"${sha256}"`;
      void reply.headers({ etag, 'cache-control': file === versioned ? immutable : 'no-cache' });
      if (matches(request.headers['if-none-match'], etag)) return reply.code(304).send();
      if (isSums) {
        const sums = [latest, versioned].map((name) => `${sha256}  ${name}\n`);
        return reply.type('text/plain; charset=utf-8').send(sums.join(''));
      }
      void reply.type('text/javascript; charset=utf-8').header('content-length', bytes.length);
      return reply.send(Readable.from(slicesOf(bytes), { objectMode: false }));
    },
  };
  for (const [url, handler] of Object.entries(handlers)) {
    const config = { access: 'open' } as const;
    app.get(url, { exposeHeadRoute: true, config, onRequest: budget, handler });
  }
}

/** Whether a client has this version (RFC 9110, section 13.1.2). */
const matches = (held: string | undefined, etag: string): boolean =>
  (held ?? '').split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));

/** In slices, so that a machine with a slow line does not keep all of it in memory. */
function* slicesOf(bytes: Buffer): Generator<Buffer, void> {
  for (let from = 0; from < bytes.length; from += tuning.chunkChars) {
    yield bytes.subarray(from, from + tuning.chunkChars);
  }
}
