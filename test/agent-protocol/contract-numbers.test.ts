/** The numbers of `docs/contract/agent-protocol.md` that tests replace by smaller ones, or that nobody waits for in a test. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { limits } from '../../src/kernel/limits.js';
import { projectRoot } from '../support/project-root.js';

const KiB = 1024;
const MiB = 1024 * KiB;
const { agent, agentControl } = limits;

test.each<[sentence: string, stated: object, kept: object]>([
  ['256 MiB of unfinished messages in all', { total: 256 * MiB }, { total: agent.unfinishedBytesTotal }],
  ['a message completes within 30 s', { ms: 30_000 }, { ms: agent.messageCompleteMs }],
  ['heartbeats, metrics and config requests 2/s (burst 20)', { perSecond: 2, burst: 20 }, agent.reading.payloads],
  ['4,000/s (burst 40,000)', { perSecond: 4_000, burst: 40_000 }, agent.reading.entries],
  ['bytes 512 KiB/s (burst 4 MiB)', { perSecond: 512 * KiB, burst: 4 * MiB }, agent.reading.bytes],
  ['64 KiB/min of facts (burst 512 KiB)', { perMinute: 64 * KiB, burst: 512 * KiB }, agent.factBytes],
  ['at most 16 KiB of errors are recorded', { bytes: 16 * KiB }, { bytes: agent.recordedErrorBytes }],
  [
    'at the second SUPERSEDED of a node within 5 minutes the node shows `duplicate_agent: true` for an hour',
    { window: 300_000, shown: 3_600_000 },
    { window: agent.duplicateWindowMs, shown: agent.duplicateShownMs },
  ],
  ['at most 16), and expire after 10 minutes', [16, 600_000], [agent.commandsPerHeartbeat, agent.commandExpiryMs]],
  ['older than 1.15 × the granted rekey interval', { factor: 1.15 }, { factor: agent.sessionAgeFactor }],
  ['dropped after 10 s; at most 2 per node', [10_000, 2], [agent.pendingSessionMs, agent.pendingPerNode]],
  ["A node's own budget (1/s, burst 10)", [1, 10], [agent.nodeOffersPerSecond, agent.nodeOffersBurst]],
  ['(default 6 h), ±10 % jitter', [21_600, 0.1], [agentControl.rekeyDefaultSeconds, agentControl.rekeyJitter]],
  ['waits for its end (2 s at most)', { ms: 2_000 }, { ms: agentControl.closeWaitMs }],
  ['or after 2 s with `sessions_ended: false`', { ms: 2_000 }, { ms: agent.sessionsEndedWaitMs }],
])('the numbers of the contract are kept: %s', (sentence, stated, kept) => {
  expect(readFileSync(join(projectRoot, 'docs/contract/agent-protocol.md'), 'utf8')).toContain(sentence);
  expect(kept).toEqual(stated);
});
