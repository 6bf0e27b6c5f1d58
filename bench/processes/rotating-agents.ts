/** A process of reference agents without listeners, which take new PSKs as if from their identity files. */
import { startAgent, type AgentHandle } from '../../src/agent/agent.js';
import { agentKeysFrom, type AgentKeys } from '../../src/channel/noise/control-psk.js';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger, type LogFields } from '../../src/kernel/logger.js';
import { answerParent } from '../child.js';

export interface Rotating {
  readonly host: string;
  readonly port: number;
  readonly agents: readonly { readonly nodeId: string; readonly controlPsk: string }[];
}

export interface RotatingCounts {
  readonly connected: number;
  /** Sessions that replaced another one. */
  readonly rekeyed: number;
  /** PSKs that were refused. */
  readonly refused: number;
  /** Sessions that were refused, or not answered in time, because of load. */
  readonly tooMany: number;
  /** Connections that were lost. */
  readonly lost: number;
}

/** How many take another PSK at the same time. */
const atOnce = 20;

interface Member {
  readonly handle: AgentHandle;
  keys: AgentKeys;
  onRekeyed(): void;
}

const members = new Map<string, Member>();
const counts = { rekeyed: 0, refused: 0, tooMany: 0, lost: 0 };

function keysOf(controlPsk: string): AgentKeys {
  const keys = agentKeysFrom(controlPsk);
  if (!keys.ok) throw new Error(keys.error);
  return keys.value;
}

function warn(_fields: LogFields, message: string): void {
  if (message.startsWith('the service refuses')) counts.refused += 1;
  if (message.startsWith('rekey refused')) counts.tooMany += 1;
}

answerParent({
  async start({ host, port, agents }: Rotating) {
    for (const { nodeId, controlPsk } of agents) {
      const keys = keysOf(controlPsk);
      const { rekeyDefaultSeconds: rekeyIntervalSeconds } = limits.agentControl;
      const handle = await startAgent({
        config: { nodeId, endpoint: { host, port }, keys, rekeyIntervalSeconds, rejectUnsupported: true },
        readPsks: async () => [members.get(nodeId)?.keys ?? keys],
        logger: { ...silentLogger, warn },
        events: {
          onRekeyed() {
            counts.rekeyed += 1;
            members.get(nodeId)?.onRekeyed();
          },
          onDisconnected: () => void (counts.lost += 1),
        },
      });
      members.set(nodeId, { handle, keys, onRekeyed: () => undefined });
    }
  },
  async take(psks: Rotating['agents']) {
    let next = 0;
    const takeOne = async (): Promise<void> => {
      for (let psk = psks[next++]; psk !== undefined; psk = psks[next++]) {
        const member = members.get(psk.nodeId);
        if (member === undefined) continue;
        member.keys = keysOf(psk.controlPsk);
        const rekeyed = new Promise<void>((resolve) => (member.onRekeyed = resolve));
        await member.handle.reload();
        await rekeyed;
      }
    };
    await Promise.all(Array.from({ length: atOnce }, takeOne));
  },
  counts: (): RotatingCounts => ({
    ...counts,
    connected: [...members.values()].filter(({ handle }) => handle.state().connected).length,
  }),
  async stop() {
    await Promise.all([...members.values()].map(({ handle }) => handle.close()));
  },
});
