/** Builds the reference agent with its planted mistakes, one after the other: what they have in common is read once. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { context } from 'esbuild';
import type { startAgent } from '../../src/agent/agent.js';
import type { readAgentConfig } from '../../src/agent/config.js';
import type { AgentMessage } from '../../src/agent/control/stream.js';
import { timedOut, withDeadline } from '../../src/kernel/background.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { AgentStarter } from '../../scripts/agent-check/agent-process.js';
import { projectRoot } from '../support/project-root.js';
import type { MessageChange, Mistake, SourceChange } from './mistakes.js';

interface AgentModule {
  readonly startAgent: typeof startAgent;
  readonly readAgentConfig: typeof readAgentConfig;
}

/** The stream of an agent whose messages are changed. */
interface Hooked extends AgentModule {
  readonly hook: { change: (message: AgentMessage) => AgentMessage };
}

const entry = `
export { startAgent } from './src/agent/agent.js';
export { readAgentConfig } from './src/agent/config.js';
export * from './src/agent/control/stream.js';
`;
const hooked: SourceChange = {
  file: 'agent/control/stream.ts',
  from: 'AgentPayload.encode({ payload: message })',
  to: 'AgentPayload.encode({ payload: hook.change(message) })',
};
const hook = '\nexport const hook = { change: (message) => message };\n';

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
          onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) =>
            path === faulty.path ? { contents: faulty.contents, loader: 'ts' } : undefined,
          ),
      },
    ],
  });
  let built: SourceChange | undefined;
  let loaded = 0;
  return {
    async agentWith({ change }) {
      const wanted = typeof change === 'function' ? hooked : change;
      if (built !== wanted) {
        const { file, from, to } = wanted;
        const path = join(projectRoot, 'src', file);
        const source = readFileSync(path, 'utf8');
        if (source.split(from).length !== 2) throw new Error(`${file}: expected exactly once: ${from}`);
        faulty = { path, contents: source.replace(from, () => to) + (wanted === hooked ? hook : '') };
        await builds.rebuild();
        built = wanted;
      }
      // A module is loaded once for each address.
      const agent = (await import(`${pathToFileURL(outfile).href}?${(loaded += 1)}`)) as Hooked;
      if (typeof change === 'function') agent.hook.change = changed(change());
      return agent;
    },
    close: () => builds.dispose(),
  };
}

const changed = (change: MessageChange) =>
  function changeMessage<M extends AgentMessage>(message: M): M {
    const one = change[message.$case] as ((value: M['value']) => M['value']) | undefined;
    return one === undefined ? message : { ...message, value: one(message.value) };
  };

const stopWithinMs = 4_000;

/** Starts an agent inside this process, which keeps its files in a folder. */
export function inProcess(agent: AgentModule, stateDir: string): AgentStarter {
  return (environment, heard) => {
    let running: Awaited<ReturnType<typeof startAgent>> | undefined;
    const write: Logger['info'] = (fields, message) => heard(`${JSON.stringify({ ...fields, message })}\n`);
    const logger = { debug: write, info: write, warn: write, error: write };
    return {
      async start() {
        const config = agent.readAgentConfig({ ...environment, SVC_AGENT_STATE_DIR: stateDir });
        running = await agent.startAgent({ config, logger });
      },
      async stop() {
        // A mistake may keep it from stopping.
        return running === undefined || (await withDeadline(running.close(), stopWithinMs)) !== timedOut;
      },
    };
  };
}
