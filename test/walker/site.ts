/** The service that is walked: the real REST service on a socket, with two resources of each kind in it. */
import { Agent, request, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { vi } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { collectionsOf, createMaker } from '../support/one-of-each.js';
import { openApiAnswers } from '../support/openapi-answers.js';
import { startRest } from '../support/rest-fixture.js';
import type { Draft } from './case.js';
import type { Site } from './cases.js';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface WalkedService {
  readonly site: Site;
  send(draft: Draft, requestId: string): Promise<Answer>;
  /** Everything that was logged, and what the sampled logs left out. */
  logged(): string;
  /** What was appended since the walk began, sign-ins left out. */
  appended(): Promise<readonly { readonly type: string; readonly requestId: string }[]>;
  close(): Promise<void>;
}

/** Its forms under case and normalisation differ from one another. */
const takenName = '\u00c5ngstr\u00f6m \u03a9mega \u00c9cran';
const answerWithinMs = 40_000;

const takenUsername = 'walker.one';

export async function startWalkedService(): Promise<WalkedService> {
  const rest = await startRest();
  await rest.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = rest.app.server.address() as AddressInfo;
  const { document, operations, ids, create } = await createMaker(rest);
  const answers = openApiAnswers((await rest.call('GET', '/openapi.json')).json());

  // One with the name that is tried again, and another one, for each resource that the document can create.
  const idsOf = new Map<string, string>();
  for (const path of collectionsOf(operations)) {
    const user = path === '/api/auth/users';
    await create(path, user ? { username: takenUsername } : { name: takenName });
    idsOf.set(path, (await create(path)).id);
  }
  const applied = await rest.data('POST', '/api/fleet/apply', {
    body: { document: 'svc: 1\nset: walked\nnodes: {walked: {}}\n' },
  });
  idsOf.set('/api/fleet/applies', applied.apply_id).set('/api/fleet/sets', 'walked');
  // A rollout that has ended, since one that runs refuses others.
  await rest.data('POST', '/api/rollout-policies', { body: { name: 'walked', waves: [{ nodes: 1 }] } });
  const started = await rest.data('PUT', '/api/settings/connectivity?rollout=walked', {
    body: { multiplex: true, multiplex_port: 7_999 },
  });
  await rest.data('POST', `/api/rollouts/${started.rollout_id}/complete`);
  idsOf.set('/api/rollouts', started.rollout_id);
  const audit = await rest.data('GET', '/api/audit');
  idsOf.set('/api/audit', audit.items[0].id);
  await rest.data('PUT', '/api/nodes/ports/policies', {
    body: { nodeId: ids.node_id, transport: 'tcp', listenAddr: '192.0.2.1', listenPort: 1_500, priorityOrder: [] },
  });

  // The sampled log writes only some of what it is told; the walk looks at all of it.
  const { refusals, requestLog } = rest.deps;
  const levels = (['debug', 'info', 'warn', 'error'] as const).map((level) => vi.spyOn(requestLog, level));
  const notes = [vi.spyOn(refusals, 'note'), ...levels];
  const before = await rest.position();
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });

  return {
    site: {
      document,
      operations,
      ids,
      takenName,
      takenUsername,
      idOf: (collection) => {
        const id = idsOf.get(collection);
        if (id === undefined) throw new Error(`the walk has no id of ${collection}: add one to test/walker/site.ts`);
        return id;
      },
      otherIdOf: (collection) => (collection === '/api/l4-upstreams' ? ids.node_id : ids.upstream_id),
    },
    send(draft, requestId) {
      const { method, path, query, headers, role, body } = draft;
      const search = query.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
      const sent = {
        ...(role === 'nobody' ? {} : { authorization: `Bearer ${rest.tokenOf(role)}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(method === 'GET' || method === 'HEAD' ? {} : { 'content-length': Buffer.byteLength(body ?? '') }),
        'x-request-id': requestId,
        ...headers,
      };
      return new Promise((resolve, reject) => {
        const url = `http://127.0.0.1:${port}${path}${search === '' ? '' : `?${search}`}`;
        const outgoing = request(url, { method, agent, headers: sent, timeout: answerWithinMs }, (incoming) => {
          const chunks: Buffer[] = [];
          incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
          incoming.on('error', reject);
          incoming.on('end', () => {
            const text = Buffer.concat(chunks).toString('utf8');
            const { statusCode = 0 } = incoming;
            try {
              answers.check(method, path, { statusCode, headers: incoming.headers, body: text });
              resolve({ status: statusCode, headers: incoming.headers, text });
            } catch (error) {
              reject(error);
            }
          });
        });
        outgoing.on('timeout', () => outgoing.destroy(new Error('no answer')));
        outgoing.on('error', reject);
        outgoing.end(body);
      });
    },
    logged: () => [...rest.logged, ...notes.map((note) => JSON.stringify(note.mock.calls))].join('\n'),
    async appended() {
      const logs = await Promise.all([streams.fleet, streams.accounts].map((stream) => rest.log(stream)));
      const later = logs.flat().filter((event) => event.position > before);
      const named = later.map(({ type, metadata }) => ({ type, requestId: metadata.request_id ?? '' }));
      // What webhooks have delivered is noted once a minute, whatever is requested.
      const noted = (await rest.log(streams.webhooks)).at(-1)?.position;
      const position = await rest.position();
      return position === before || position === noted ? named : [{ type: 'something', requestId: '' }, ...named];
    },
    async close() {
      agent.destroy();
      vi.restoreAllMocks();
      await rest.close();
    },
  };
}
