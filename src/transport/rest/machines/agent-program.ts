/**
 * The agent's program, one file, as machines download it: read at the first request and kept, so that one instance serves one build.
 * `machine-routes.ts` serves it.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { findBuilt } from '../../../kernel/files.js';

export interface AgentProgram {
  readonly bytes: Buffer;
  /** Hexadecimal. */
  readonly sha256: string;
}

/** @returns gives the program; undefined where it was not built */
export function openAgentProgram(
  find: () => string | undefined = () => findBuilt('agent/gateway-agent.cjs', import.meta.url),
): () => Promise<AgentProgram | undefined> {
  let program: Promise<AgentProgram> | undefined;
  return async () => {
    if (program === undefined) {
      const path = find();
      if (path === undefined) return undefined;
      program = readProgram(path);
      // The next request tries again.
      program.catch(() => (program = undefined));
    }
    return program;
  };
}

async function readProgram(path: string): Promise<AgentProgram> {
  const bytes = await readFile(path);
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}
