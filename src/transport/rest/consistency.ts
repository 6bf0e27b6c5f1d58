/**
 * Read your writes: the context of a command, the headers that its answer carries, the wait of a GET with
 * `x-min-position`, and commands while a store is away. Implements `docs/contract/rest.md#consistency`, and `unavailable` of Errors.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext, CommandOutcome } from '../../commands/port.js';
import type { Caller } from '../../commands/handlers-port.js';
import { ServiceError } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { RestApp, RestDeps } from './deps.js';
import { idempotencyMark } from './headers.js';

/** The caller that the gate has let in. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === null) throw new Error('a route without a caller asked for it');
  return request.caller;
}

export function commandContext(request: FastifyRequest): CommandContext {
  const caller = callerOf(request);
  return {
    actor: { type: 'user', id: caller.userId, name: caller.username },
    requestId: request.id,
    idempotency: idempotencyMark(request, caller.userId),
  };
}

/** Sets the headers of a command's answer. The command has already waited, once, for everything that a GET reads. */
export function settle(reply: FastifyReply, outcome: CommandOutcome<unknown>): void {
  void reply.header('x-position', String(outcome.position));
  if (outcome.lagging) void reply.header('x-projection-lag', 'true');
}

/** Makes a GET with `x-min-position` wait; after validation, before the resource is looked for. */
export function installMinPosition(app: RestApp, deps: RestDeps): void {
  app.addHook('preHandler', async (request) => {
    // Validation has turned it into a number where the route reads it.
    const position: unknown = request.method === 'GET' ? request.headers['x-min-position'] : undefined;
    if (typeof position !== 'number') return;
    if (await deps.projections.reached(position, limits.rest.projectionWaitMs)) return;
    throw new ServiceError('unavailable', 'x-min-position: this instance does not show that log position yet');
  });
}

/**
 * Refuses commands while a store is known to be away, before anything is begun for them: they would wait for it in vain,
 * or leave something half done. A sign-in needs neither store.
 */
export function installOutages(app: RestApp, deps: RestDeps): void {
  app.addHook('preHandler', async (request) => {
    const { access } = request.routeOptions.config;
    if (request.method === 'GET' || request.method === 'HEAD' || access === 'login' || access === undefined) return;
    const away = deps.storesAway();
    if (away !== undefined) throw new ServiceError('unavailable', `${away}; nothing was written`);
  });
}

/** A resource that is not there: the 404 of the path's id. */
export function found<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new ServiceError('not_found', `no ${what} has this id`);
  return value;
}
