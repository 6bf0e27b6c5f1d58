/** Runs programs with the system calls and address families that a systemd unit allows. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** @returns what precedes a command line; undefined where there is no such sandbox */
export function sandboxOf(unit: string): readonly string[] | undefined {
  const setting = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
  const script = fileURLToPath(new URL('sandbox.py', import.meta.url));
  const command = ['python3', script, setting('SystemCallFilter'), setting('RestrictAddressFamilies')] as const;
  return spawnSync(command[0], [...command.slice(1), 'true']).status === 0 ? command : undefined;
}
