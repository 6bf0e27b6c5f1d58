/** Logs of earlier releases are still read, with the same meaning (`docs/contract/domain.md#commands-and-events`). */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { applyAccounts, emptyAccounts } from '../../src/domain/accounts/accounts.js';
import { chainStatus } from '../../src/domain/chain/status.js';
import { signinEvent } from '../../src/domain/accounts/signin.js';
import { agentEvent } from '../../src/domain/agents/facts.js';
import type { ChainHead } from '../../src/domain/log-chain/links.js';
import { emptyChain } from '../../src/domain/log-chain/links.js';
import { readCommand, readEvent, schemaVersions } from '../../src/domain/log/upcast.js';
import type { RecordedCommand, RecordedEvent } from '../../src/kernel/event.js';
import { streams } from '../../src/kernel/event.js';
import { createLogChain } from '../../src/log-chain/log-chain.js';
import { keysOf } from '../../src/log-chain/open.js';
import { foldOf } from '../support/fleet.js';
import { goldenLog } from '../support/golden-log.js';
import { testMasterKey } from '../support/log-chain.js';

const folder = join(dirname(fileURLToPath(import.meta.url)), '..', 'golden', 'logs');
/** The log of the coming release: the last one by name. */
const newest = 'release-0.3';

function commandsOf(events: readonly RecordedEvent[]): readonly RecordedCommand[] {
  const commands: RecordedCommand[] = [];
  for (const event of events) {
    const last = commands.at(-1);
    if (last !== undefined && last.events[0].metadata.command.id === event.metadata.command.id) {
      commands[commands.length - 1] = { ...last, events: [...last.events, event] };
    } else {
      commands.push({ stream: event.stream, events: [event] });
    }
  }
  return commands;
}

/** What the log means, in terms that do not depend on the shapes of events. */
async function meaningOf(events: readonly RecordedEvent[]): Promise<unknown> {
  const of = (stream: string): readonly RecordedCommand[] =>
    commandsOf(events.filter((event) => event.stream === stream));
  const fleet = foldOf(of(streams.fleet));
  const accounts = emptyAccounts();
  const chain = createLogChain(
    await keysOf(
      of(streams.logChain).flatMap((command) => command.events),
      testMasterKey(8),
    ),
  );
  const headOf = (stream: string): ChainHead =>
    of(stream).reduce((head, command) => chain.follow(head, command), emptyChain);
  for (const command of of(streams.accounts)) applyAccounts(accounts, readCommand(command));
  return {
    generations: Object.fromEntries(
      [...fleet.tables.node.values()].map(({ id, name }) => [name, fleet.generationOf(id)]),
    ),
    upstreams: Object.fromEntries(
      [...fleet.tables.l4_upstream.values()].map(({ name, endpoint, enabled }) => [name, { endpoint, enabled }]),
    ),
    chains: Object.fromEntries([...fleet.tables.l4_chain.values()].map((chain) => [chain.name, chainStatus(chain)])),
    // Undefined, and so not compared, before the release that has routes and policies.
    routes:
      fleet.tables.route.size === 0
        ? undefined
        : Object.fromEntries(
            [...fleet.tables.route.values()].map(({ name, host, enabled }) => [name, { host, enabled }]),
          ),
    // As above.
    credentials:
      fleet.tables.credential.size === 0
        ? undefined
        : Object.fromEntries(
            [...fleet.tables.credential.values()].map(({ name, key_type, server_names, certificate, overlap }) => [
              name,
              { key_type, server_names, pin: certificate?.spki_sha256 ?? null, overlap },
            ]),
          ),
    policies:
      fleet.tables.listener_policy.size === 0
        ? undefined
        : Object.fromEntries([...fleet.tables.listener_policy.values()].map((one) => [one.id, one.priority_order])),
    networks:
      fleet.tables.l3_network.size === 0
        ? undefined
        : Object.fromEntries(
            [...fleet.tables.l3_network.values()].map(({ name, network_id, mtu, members, tunnels }) => [
              name,
              { network_id, mtu, members, tunnels },
            ]),
          ),
    heartbeat_interval_secs: fleet.singletons.connectivity.value.heartbeat_interval_secs,
    overrides: Object.keys(fleet.singletons.connectivity.value.nodes).length,
    compiler: fleet.singletons.service.value,
    // Undefined, and so not compared, before the release that has log chains.
    log_chains: newer(events) ? [headOf(streams.fleet), headOf(streams.accounts)] : undefined,
    users: Object.fromEntries(
      [...accounts.users.values()].map(({ username, role, token_version }) => [username, { role, token_version }]),
    ),
  };
}

const newer = (events: readonly RecordedEvent[]): boolean => events.some(({ type }) => type === 'LogChainStarted');

// Writes only a missing log: that of a release is never edited.
if (process.env['RECORD_GOLDEN'] === '1' && !existsSync(join(folder, `${newest}.jsonl`))) {
  const log = goldenLog();
  writeFileSync(join(folder, `${newest}.jsonl`), log.map((event) => `${JSON.stringify(event)}\n`).join(''));
  writeFileSync(join(folder, `${newest}.meaning.json`), `${JSON.stringify(await meaningOf(log), null, 2)}\n`);
}

const releases = readdirSync(folder).flatMap((file) => /^(.+)\.jsonl$/.exec(file)?.[1] ?? []);
const read = (release: string): readonly RecordedEvent[] =>
  readFileSync(join(folder, `${release}.jsonl`), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as RecordedEvent);

describe('the log of', () => {
  it.each(releases)('%s folds to the recorded meaning', async (release) => {
    const meaning: unknown = JSON.parse(readFileSync(join(folder, `${release}.meaning.json`), 'utf8'));
    expect(await meaningOf(read(release))).toEqual(meaning);
  });

  it.each(releases)('%s has only known events after upcasting, in every stream', (release) => {
    for (const event of read(release)) {
      const current = readEvent(event);
      expect(Object.keys(schemaVersions)).toContain(current.type);
      if (event.stream.startsWith(streams.agentsPrefix)) expect(agentEvent(current).data.node_id).toBeTypeOf('string');
      if (event.stream === streams.signins) expect(signinEvent(current).data.address).toBeTypeOf('string');
    }
  });

  it('the coming release has every event type in its current schema version', () => {
    const written = new Set(read(newest).map(({ type, metadata }) => `${type}@${metadata.schema_version}`));
    const current = Object.entries(schemaVersions).map(([type, version]) => `${type}@${version}`);
    expect([...written].sort(), 'add the new event type or version to the golden log of the coming release').toEqual(
      current.sort(),
    );
  });
});
