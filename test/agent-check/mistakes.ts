/**
 * The reference agent with a mistake: one piece of its source replaced by another, built by esbuild and loaded into the test's
 * process. A piece that its file does not have once fails the test, so that no mistake is lost when the agent changes.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { context } from 'esbuild';
import type { startAgent } from '../../src/agent/agent.js';
import type { readAgentConfig } from '../../src/agent/config.js';
import type { AgentStarter } from '../../scripts/agent-check/agent-process.js';
import type { SentenceName } from '../../scripts/agent-check/sentences.js';
import { projectRoot } from '../support/project-root.js';

export interface Mistake {
  /** What the agent does wrong. */
  readonly what: string;
  /** Below src/. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** The scenario that finds it, and the sentence that it names. */
  readonly scenario: string;
  readonly sentence: SentenceName;
}

const control = (name: string): string => `agent/control/${name}.ts`;

export const mistakes: readonly Mistake[] = [
  {
    what: 'asks for everything on each new session',
    file: control('session'),
    from: 'fresh ? undefined : gateway.applied',
    to: 'undefined',
    scenario: 'lost-connection',
    sentence: 'request',
  },
  {
    what: 'does not repeat its last report',
    file: control('session'),
    from: 'if (last !== undefined) stream.send',
    to: 'if (false) stream.send',
    scenario: 'lost-connection',
    sentence: 'repeatsReport',
  },
  {
    what: 'makes up a state of its routes',
    file: 'agent/plan/rule-checks.ts',
    from: "state: '',",
    to: "state: 'running',",
    scenario: 'first-session',
    sentence: 'routeState',
  },
  {
    what: 'says NORMAL when it replaces a session',
    file: control('session-loop'),
    from: 'SessionCloseReason.NORMAL : SessionCloseReason.REKEY',
    to: 'SessionCloseReason.NORMAL : SessionCloseReason.NORMAL',
    scenario: 'rekey',
    sentence: 'rekeyClose',
  },
  {
    what: 'gives its session up when a rekey is refused',
    file: control('session-loop'),
    from: 'await sleep(backoff(limits.agentControl.reconnect, failures, random), over);',
    to: "return { kind: 'ended', end: { kind: 'refused', ...replacement.error } };",
    scenario: 'rekey',
    sentence: 'rekeyRefused',
  },
  {
    what: 'does not compare the session id with the handshake',
    file: control('client'),
    from: '|| !answer.sessionId.equals(sessionId)',
    to: '',
    scenario: 'false-service',
    sentence: 'sessionId',
  },
  {
    what: 'does not take the clock of the service',
    file: control('client'),
    from: 'offset.milliseconds = serverTime - clock.now();',
    to: '',
    scenario: 'clock-skew',
    sentence: 'skewOffset',
  },
  {
    what: 'uses a nonce again',
    file: control('client'),
    from: 'nonce: randomBytes(limits.agent.nonceBytes)',
    to: 'nonce: Buffer.alloc(limits.agent.nonceBytes)',
    scenario: 'lost-connection',
    sentence: 'newMessageOne',
  },
  {
    what: 'comes back at once after REVOKED',
    file: control('reconnect'),
    from: 'return Math.max(requestedMs, revokedRetryMs);',
    to: 'return requestedMs;',
    scenario: 'revoked',
    sentence: 'revoked',
  },
  {
    what: 'comes back at once after SUPERSEDED',
    file: control('reconnect'),
    from: 'return Math.max(requestedMs, supersededWaitMs);',
    to: 'return requestedMs;',
    scenario: 'superseded',
    sentence: 'superseded',
  },
  {
    what: 'does not wait as long as it is told',
    file: control('reconnect'),
    from: 'const requestedMs = Math.min(end.close.retryAfterMs, retryAfterMaxMs);',
    to: 'const requestedMs = 0;',
    scenario: 'closes',
    sentence: 'retryAfter',
  },
  {
    what: 'believes a bare PERMISSION_DENIED',
    file: control('stream'),
    from: "call.on('status', (status: StatusObject) => lose(",
    to: "call.on('status', (status) => status.code === 7 ? finish({ kind: 'closed', close: { reason: 4, message: '', retryAfterMs: 0 } }) : lose(",
    scenario: 'bare-statuses',
    sentence: 'bareStatus',
  },
  {
    what: 'goes on after a frame that does not verify',
    file: control('stream'),
    from: 'if (!plaintext.ok) return lose(`frame refused: ${plaintext.error}`);',
    to: 'if (!plaintext.ok) return;',
    scenario: 'bad-frames',
    sentence: 'badFrame',
  },
  {
    what: 'names its session in every frame',
    file: control('stream'),
    from: 'sessionId: attached ? empty : Buffer.from(sessionId)',
    to: 'sessionId: Buffer.from(sessionId)',
    scenario: 'first-session',
    sentence: 'idOnFirstFrame',
  },
  {
    what: 'joins no more than 4 MiB',
    file: control('stream'),
    from: 'createJoiner(limits.agent.joinedOutBytes)',
    to: 'createJoiner(limits.agent.joinedInBytes)',
    scenario: 'fragments',
    sentence: 'joined',
  },
  {
    what: 'applies a snapshot that is older than its own',
    file: 'agent/runtime.ts',
    from: 'generation < applied.generation',
    to: 'false',
    scenario: 'snapshots',
    sentence: 'olderIgnored',
  },
  {
    what: 'says that it applied what it could not',
    file: 'agent/runtime.ts',
    from: 'const accepted = errors.length === 0;',
    to: 'const accepted = true;',
    scenario: 'rejects',
    sentence: 'keepsWhatRan',
  },
  {
    what: 'reports more errors than a report may have',
    file: 'agent/runtime.ts',
    from: 'errors: errors.slice(0, limits.agent.applyErrors)',
    to: 'errors',
    scenario: 'rejects',
    sentence: 'errorsBound',
  },
  {
    what: 'rejects without the field',
    file: 'agent/plan/rule-checks.ts',
    from: 'resourceId: origin.resourceId, path, message',
    to: "resourceId: origin.resourceId, path: '', message",
    scenario: 'kinds',
    sentence: 'unsupported',
  },
  {
    what: 'sends heartbeats without its table',
    file: control('session'),
    from: 'runtimeListeners: gateway.runtimeListeners()',
    to: 'runtimeListeners: []',
    scenario: 'first-session',
    sentence: 'wholeTable',
  },
  {
    what: 'waits for answers for ever',
    file: control('session'),
    from: 'unanswered >= limits.agentControl.missedHeartbeats',
    to: 'false',
    scenario: 'heartbeats',
    sentence: 'unanswered',
  },
  {
    what: 'ends without a word',
    file: control('session'),
    from: "await stream.close({ reason, message: '', retryAfterMs: 0 }, limits.agentControl.closeWaitMs);",
    to: "stream.cut('stopped');",
    scenario: 'stopping',
    sentence: 'normal',
  },
];

interface AgentModule {
  readonly startAgent: typeof startAgent;
  readonly readAgentConfig: typeof readAgentConfig;
}

const entry = `
export { startAgent } from './src/agent/agent.js';
export { readAgentConfig } from './src/agent/config.js';
`;

/** Builds agents with mistakes, one after the other: what is the same in all of them is read once. */
export interface FaultyBuilds {
  /** @throws Error if the piece to replace is not there exactly once */
  agentWith(mistake: Mistake): Promise<AgentModule>;
  close(): Promise<void>;
}

/** @param folder where they are built; inside the project, so that its packages are found */
export async function openFaultyBuilds(folder: string): Promise<FaultyBuilds> {
  let faulty = { path: '', contents: '' };
  const outfile = join(folder, 'agent.mjs');
  const builds = await context({
    stdin: { contents: entry, resolveDir: projectRoot, loader: 'ts' },
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
    plugins: [
      {
        name: 'mistake',
        setup: ({ onLoad }) =>
          onLoad({ filter: /\/src\/agent\/.*\.ts$/ }, ({ path }) =>
            path === faulty.path ? { contents: faulty.contents, loader: 'ts' } : undefined,
          ),
      },
    ],
  });
  let built = 0;
  return {
    async agentWith({ file, from, to }) {
      const path = join(projectRoot, 'src', file);
      const source = readFileSync(path, 'utf8');
      if (source.split(from).length !== 2) throw new Error(`${file}: expected exactly once: ${from}`);
      faulty = { path, contents: source.replace(from, () => to) };
      await builds.rebuild();
      // A module is loaded once for each address.
      return (await import(`${pathToFileURL(outfile).href}?${(built += 1)}`)) as AgentModule;
    },
    close: () => builds.dispose(),
  };
}

/** Starts an agent inside this process. */
export function inProcess(agent: AgentModule): AgentStarter {
  return (environment) => {
    let running: Awaited<ReturnType<typeof startAgent>> | undefined;
    return {
      async start() {
        running = await agent.startAgent({ config: agent.readAgentConfig(environment) });
      },
      async stop() {
        await running?.close();
        return true;
      },
    };
  };
}
