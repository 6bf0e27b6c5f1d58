/** Runs programs with the system calls and address families that a systemd unit allows. */
import { fileURLToPath } from 'node:url';
import { canRun } from './can-run.js';

/** @returns what precedes a command line; undefined where there is no such sandbox */
export function sandboxOf(unit: string): readonly string[] | undefined {
  const setting = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
  const script = fileURLToPath(new URL('sandbox.py', import.meta.url));
  const command = ['python3', script, setting('SystemCallFilter'), setting('RestrictAddressFamilies')] as const;
  return canRun(...command, 'true') ? command : undefined;
}
