/** "The agent keeps no configuration on disk": `docs/contract/agent-protocol.md#configuration`. Who it is, it keeps (`joining.test.ts`). */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../support/project-root.js';

test('one module of the agent can write a file, and none can start a program that would', () => {
  const folder = join(projectRoot, 'src/agent');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  expect(files).toEqual(expect.arrayContaining(['runtime.ts', 'control/session-loop.ts', 'relays/dial.ts']));
  for (const name of files) {
    const source = readFileSync(join(folder, name), 'utf8');
    if (name === 'state-directory.ts') continue;
    const harmless = source.replace("import { realpathSync } from 'node:fs';", '');
    expect(harmless, name).not.toMatch(/'(node:)?(fs|fs\/promises|child_process)'/);
    // The PSK may stand in a file, and the system tells of descriptors; nothing else of that module is for the agent.
    const files = /import \{([^}]*)\} from '[./]*kernel\/files\.js'/.exec(source)?.[1]?.split(',') ?? [];
    expect(['openDescriptors', 'readSecretFile', 'systemErrorCode'], name).toEqual(
      expect.arrayContaining(files.map((one) => one.trim())),
    );
  }
});
