/** What earlier releases wrote must still be read: upcast, folded, and with the same meaning (`docs/contract/domain.md`). */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { applyAccounts, emptyAccounts } from '../../src/domain/accounts/accounts.js';
import { chainStatus } from '../../src/domain/chain/status.js';
import { signinEvent } from '../../src/domain/accounts/signin.js';
import { agentEvent } from '../../src/domain/agents/facts.js';
import { readCommand, readEvent, schemaVersions } from '../../src/domain/log/upcast.js';
import type { RecordedCommand, RecordedEvent } from '../../src/kernel/event.js';
import { streams } from '../../src/kernel/event.js';
import { foldOf } from '../support/fleet.js';
import { goldenLog } from '../support/golden-log.js';

const folder = join(dirname(fileURLToPath(import.meta.url)), '..', 'golden', 'logs');
/** The log of the release that is being made: the last one by name. */
const newest = 'release-0.1';

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

/** What the log means, in terms that stay when shapes change. */
function meaningOf(events: readonly RecordedEvent[]): unknown {
  const of = (stream: string): readonly RecordedCommand[] =>
    commandsOf(events.filter((event) => event.stream === stream));
  const fleet = foldOf(of(streams.fleet));
  const accounts = emptyAccounts();
  for (const command of of(streams.accounts)) applyAccounts(accounts, readCommand(command));
  return {
    generations: Object.fromEntries(
      [...fleet.tables.node.values()].map(({ id, name }) => [name, fleet.generationOf(id)]),
    ),
    upstreams: Object.fromEntries(
      [...fleet.tables.l4_upstream.values()].map(({ name, endpoint, enabled }) => [name, { endpoint, enabled }]),
    ),
    chains: Object.fromEntries([...fleet.tables.l4_chain.values()].map((chain) => [chain.name, chainStatus(chain)])),
    heartbeat_interval_secs: fleet.singletons.connectivity.value.heartbeat_interval_secs,
    overrides: Object.keys(fleet.singletons.connectivity.value.nodes).length,
    compiler: fleet.singletons.service.value,
    users: Object.fromEntries(
      [...accounts.users.values()].map(({ username, role, token_version }) => [username, { role, token_version }]),
    ),
  };
}

// Only what is missing is written: the log of a release is never edited.
if (process.env['RECORD_GOLDEN'] === '1' && !existsSync(join(folder, `${newest}.jsonl`))) {
  const log = goldenLog();
  writeFileSync(join(folder, `${newest}.jsonl`), log.map((event) => `${JSON.stringify(event)}\n`).join(''));
  writeFileSync(join(folder, `${newest}.meaning.json`), `${JSON.stringify(meaningOf(log), null, 2)}\n`);
}

const releases = readdirSync(folder).flatMap((file) => /^(.+)\.jsonl$/.exec(file)?.[1] ?? []);
const read = (release: string): readonly RecordedEvent[] =>
  readFileSync(join(folder, `${release}.jsonl`), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as RecordedEvent);

describe('the log of', () => {
  it.each(releases)('%s is upcast and folds to what it meant then', (release) => {
    const meaning: unknown = JSON.parse(readFileSync(join(folder, `${release}.meaning.json`), 'utf8'));
    expect(meaningOf(read(release))).toEqual(meaning);
  });

  it.each(releases)("%s is read in today's shapes in every stream", (release) => {
    for (const event of read(release)) {
      const today = readEvent(event);
      expect(Object.keys(schemaVersions)).toContain(today.type);
      if (event.stream.startsWith(streams.agentsPrefix)) expect(agentEvent(today).data.node_id).toBeTypeOf('string');
      if (event.stream === streams.signins) expect(signinEvent(today).data.address).toBeTypeOf('string');
    }
  });

  it("the newest release holds every event type in today's schema version", () => {
    const written = new Set(read(newest).map(({ type, metadata }) => `${type}@${metadata.schema_version}`));
    const known = Object.entries(schemaVersions).map(([type, version]) => `${type}@${version}`);
    expect([...written].sort(), 'a new event type or version belongs into the golden log of the release').toEqual(
      known.sort(),
    );
  });
});
