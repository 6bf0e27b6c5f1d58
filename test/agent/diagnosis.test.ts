/** What an agent finds when it checks itself, and the report of it within its bounds. */
import { createServer } from 'node:tls';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Gateway } from '../../src/agent/gateway.js';
import { keepLastLines } from '../../src/agent/diagnosis/last-lines.js';
import { reportOf } from '../../src/agent/diagnosis/report.js';
import { DiagnosticsReport } from '../../src/gen/svc/control/v1/diagnostics.js';
import { AgentPayload } from '../../src/gen/svc/control/v1/session.js';
import { systemClock } from '../../src/kernel/clock.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { readAgentPayload } from '../../src/transport/agent/agent-payload.js';
import { closersAfterEach } from '../support/closers.js';
import { agentRuntime } from '../support/agent-runtime.js';
import { attachedTo } from '../support/attached.js';
import { createCertificate } from '../support/certificate.js';
import { startPlainTarget } from '../support/plain-target.js';
import { startTlsTarget, targetName } from '../support/reality-fixture.js';
import {
  cluster,
  encRule,
  freePort,
  overEnc,
  overReality,
  overTls,
  realityRule,
  snapshot,
  tcpRule,
  tcpServer,
  udpRule,
} from '../support/snapshots.js';
import { pinOf } from '../support/tls-client.js';

const closers = closersAfterEach();

const going = new AbortController().signal;

describe('an agent that checks what it dials', () => {
  it('says of each way whether it leads anywhere, as its rules demand it, once for all rules that share it', async () => {
    const ports = await Promise.all(Array.from({ length: 10 }, () => freePort()));
    const [dead, hop, tls, enc, gone, ...entries] = ports as [number, number, number, number, number, ...number[]];
    const target = await startTlsTarget();
    const plain = await startPlainTarget((socket) => socket.end('220 no TLS'));
    closers.push(
      () => target.close(),
      () => plain.close(),
    );
    const alive = await tcpServer((socket) => socket.end());
    closers.push(() => alive.close());
    const [right, other] = [createCertificate('right'), createCertificate('other')];
    const pinned = createServer({ cert: right.cert, key: right.key }).listen(tls, '127.0.0.1');
    closers.push(async () => void pinned.close());
    const [hopKeys, encKeys] = [generateX25519(), generateX25519()];
    const reality = { keys: hopKeys, serverNames: [targetName], targetPort: target.port };
    const unusable = { keys: hopKeys, serverNames: ['plain.example'], targetPort: plain.port };

    const peer = agentRuntime(closers);
    await peer.apply(
      snapshot(1, {
        tcp: [realityRule(hop, `127.0.0.1:${alive.port}`, reality), realityRule(gone, `127.0.0.1:${dead}`, unusable)],
        udp: [encRule(enc, encKeys, '127.0.0.1:9')],
      }),
    );
    const node = agentRuntime(closers);
    const [a = 0, b = 0, c = 0, d = 0, e = 0] = entries;
    const applied = await node.apply(
      snapshot(1, {
        tcp: [
          ...[a, b].map((port) => tcpRule(port, 'cluster:web')),
          tcpRule(c, '', overReality(`127.0.0.1:${hop}`, hopKeys.publicKey, targetName)),
          tcpRule(d, '', overTls(`127.0.0.1:${tls}`, [pinOf(right)])),
          tcpRule(e, '', overTls(`127.0.0.1:${tls}`, [pinOf(other)])),
        ],
        udp: [
          udpRule(a, '', overEnc(`127.0.0.1:${enc}`, encKeys.publicKey)),
          udpRule(b, `127.0.0.1:${dead}`),
          udpRule(c, 'cluster:off'),
        ],
        clusters: [
          cluster('web', [`127.0.0.1:${alive.port}`, `127.0.0.1:${dead}`]),
          cluster('off', [`127.0.0.1:${dead}`], false),
        ],
      }),
    );
    expect(applied?.errors).toEqual([]);

    const seen = async (gateway: Gateway): Promise<readonly string[]> =>
      (await gateway.probe(going)).map(
        ({ name, value, ok }) => `${ok ? 'ok' : 'FAILED'} ${name}: ${value.replace(/\d+ ms/, 'n ms')}`,
      );
    const of = (chain: string): string => `of l4_chain "name of ${chain}"`;
    const not = 'not reached after n ms';
    expect(await seen(node)).toEqual([
      `ok upstream 127.0.0.1:${alive.port} over raw tcp, ${of(`chain-${a}`)} (2 rules): reached in n ms`,
      `FAILED upstream 127.0.0.1:${dead} over raw tcp, ${of(`chain-${a}`)} (2 rules): ${not}: ECONNREFUSED`,
      `ok next hop 127.0.0.1:${hop} over REALITY, ${of(`chain-${c}`)}: reached in n ms`,
      `ok next hop 127.0.0.1:${tls} over TLS, ${of(`chain-${d}`)}: reached in n ms`,
      `FAILED next hop 127.0.0.1:${tls} over TLS, ${of(`chain-${e}`)}: ${not}: its key is not pinned: ${pinOf(right)}`,
      `ok next hop 127.0.0.1:${enc} over ENC, ${of(`udp-${a}`)}: reached in n ms`,
      // All that can be known without a datagram that means something.
      `ok next hop 127.0.0.1:${dead} over raw udp, ${of(`udp-${b}`)}: there is a way to it, found in n ms`,
      `FAILED upstream 127.0.0.1:${dead} over raw udp, ${of(`udp-${c}`)}: ${not}: it is disabled`,
    ]);
    const own = await seen(peer);
    const targetOf = (port: number, name: string, chain: string): string =>
      `REALITY target 127.0.0.1:${port} as ${name}, ${of(chain)}`;
    expect(own).toContain(`ok ${targetOf(target.port, targetName, `chain-${hop}`)}: reached in n ms`);
    expect(own).toContain(
      `FAILED ${targetOf(plain.port, 'plain.example', `chain-${gone}`)}: ${not}: it answers, but in a way that cannot be imitated`,
    );
  });

  it('is done at once when it must stop, and calls nothing ok that it has not tried', async () => {
    const node = agentRuntime(closers);
    expect(await node.probe(going)).toEqual([]);
    const silent = await startPlainTarget();
    closers.push(() => silent.close());
    const stop = new AbortController();
    const way = overTls(`127.0.0.1:${silent.port}`, [pinOf(createCertificate('any'))]);
    await node.apply(snapshot(1, { tcp: [tcpRule(await freePort(), '', way)] }));
    const probing = node.probe(stop.signal);
    await expect.poll(() => silent.sockets.length).toBe(1);
    stop.abort();
    expect(await probing).toMatchObject([{ ok: false, value: expect.stringContaining('not reached') }]);
    expect(await node.probe(stop.signal)).toMatchObject([{ ok: false, value: 'not tried: no time was left' }]);
    expect(attachedTo(stop.signal)).toEqual([]);
  });
});

describe('the report', () => {
  const text = fc.oneof(fc.string({ maxLength: 30 }), fc.string({ unit: 'binary', minLength: 300, maxLength: 1_500 }));
  const item = fc.record({ name: text, value: text, ok: fc.boolean() });

  it('always fits, holds the newest lines and first of all what failed, and says what it leaves out', () => {
    const many = fc
      .tuple(fc.array(item, { maxLength: 60 }), fc.nat(40))
      .map(([items, times]) => Array.from({ length: times }, () => items).flat());
    fc.assert(
      fc.property(many, fc.array(text, { maxLength: 120 }), (items, log) => {
        const report = reportOf(items, log, 1_700_000_000_123);
        const payload = AgentPayload.encode({ payload: { $case: 'diagnostics', value: report } }).finish();
        expect(readAgentPayload(payload, 'node-1')).toMatchObject({ kind: 'message' });
        expect(DiagnosticsReport.encode(report).finish().length).toBeLessThanOrEqual(limits.agent.diagnostics.bytes);
        const last = report.items.at(-1);
        const kept = last?.name === 'left out' ? report.items.slice(0, -1) : report.items;
        const left = [items.length - kept.length, log.length - report.log.length];
        if (left[0] === 0 && left[1] === 0) expect(kept).toHaveLength(items.length);
        else
          expect(last).toEqual({
            name: 'left out',
            value: `${left[0]} items, ${left[1]} lines of the log`,
            ok: left[0] === 0,
          });
        const failed = (all: readonly { readonly ok: boolean }[]): number => all.filter(({ ok }) => !ok).length;
        if (kept.some(({ ok }) => ok)) expect(failed(kept)).toBe(failed(items));
        expect(report.log.length === 0 && log.length > 0).toBe(false);
      }),
      { numRuns: 200 },
    );
  });

  it('has the last 100 lines of the log, on one line each, without a PSK', () => {
    const { logger, lines } = keepLastLines(silentLogger, { ...systemClock, now: () => 0 });
    for (let index = 0; index < 102; index += 1) logger.info({ index }, 'line');
    logger.debug({}, 'not kept');
    logger.warn({ detail: 'with svcpsk1_c2VjcmV0-_x in it\n' }, 'last');
    const { log } = reportOf([], lines(), 0);
    expect([log.length, log[0]]).toEqual([100, '1970-01-01T00:00:00.000Z info line {"index":3}']);
    expect(log.at(-1)).toBe('1970-01-01T00:00:00.000Z warn last {"detail":"with svcpsk1_*** in it\\n"}');
  });
});
