/**
 * A separate process that connects once a second as an agent does after a restart (new connection, session, hello, first
 * configuration), and notes how long that took. It has a good key and an address of its own, 127.0.0.1.
 */
import { createControlClient } from '../../src/agent/control/client.js';
import { AgentHello, SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { sleep } from '../../src/kernel/background.js';
import { systemClock } from '../../src/kernel/clock.js';
import { agentKeysFrom } from '../../src/channel/noise/control-psk.js';
import { answerParent } from '../child.js';

export interface GoodAgent {
  readonly host: string;
  readonly port: number;
  /** One after the other, because a node may open one session a second. */
  readonly nodes: readonly { readonly nodeId: string; readonly controlPsk: string }[];
}

export interface Attempts {
  /** Milliseconds from the connection to the first configuration. */
  readonly took: readonly number[];
  readonly failed: readonly string[];
}

const giveUpMs = 10_000;

let took: number[] = [];
let failed: string[] = [];

answerParent({
  start(agent: GoodAgent) {
    void attempts(agent);
  },
  /** The attempts since the last call. */
  result(): Attempts {
    const attemptsUntilNow = { took, failed };
    [took, failed] = [[], []];
    return attemptsUntilNow;
  },
});

async function attempts(agent: GoodAgent): Promise<never> {
  for (let index = 0; ; index += 1) {
    const began = performance.now();
    const problem = await attempt(agent, index);
    if (problem === undefined) took.push(performance.now() - began);
    else failed.push(problem);
    await sleep(Math.max(0, 1_000 - (performance.now() - began)));
  }
}

/** @returns why it failed */
async function attempt({ host, port, nodes }: GoodAgent, index: number): Promise<string | undefined> {
  const node = nodes[index % nodes.length];
  const keys = node === undefined ? undefined : agentKeysFrom(node.controlPsk);
  if (node === undefined || keys?.ok !== true) throw new Error('no node with a PSK');
  const client = createControlClient({
    endpoint: { host, port },
    nodeId: node.nodeId,
    keys: keys.value,
    agentVersion: 'good/1',
    clock: systemClock,
    offset: { milliseconds: 0 },
  });
  try {
    const opened = await client.open(AbortSignal.timeout(giveUpMs));
    if (!opened.ok) return `refused with ${opened.error.status}: ${opened.error.detail}`;
    let configured: (value: true) => void = () => undefined;
    const first = new Promise<true>((resolve) => {
      configured = resolve;
    });
    const stream = opened.value.attach((message) => {
      if (message.$case === 'configUpdate') configured(true);
    });
    stream.send({ $case: 'hello', value: AgentHello.fromPartial({ agentVersion: 'good/1' }) });
    stream.send({ $case: 'configRequest', value: { nodeId: '', configVersion: 0n, checksum: Buffer.alloc(0) } });
    const outcome = await Promise.race([first, stream.ended, sleep(giveUpMs)]);
    await stream.close({ reason: SessionCloseReason.NORMAL, message: '', retryAfterMs: 0 }, 500);
    if (outcome === true) return undefined;
    return outcome === undefined ? `no configuration within ${giveUpMs} ms` : `the stream ended: ${outcome.kind}`;
  } finally {
    client.close();
  }
}
