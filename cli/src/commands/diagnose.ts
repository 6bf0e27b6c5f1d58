/** diagnose: lets the agent of a node check itself and what it dials, and shows what it found. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { refused } from '../exit.js';
import { reportOption, wholeNumber, type ReportOptions } from '../options.js';
import { line, printList, printValue, shown, type Column } from '../output.js';
import { findOne, typeOf } from '../resources.js';
import { dataOf, type Api, type Schemas } from '../service.js';
import { openSession } from '../session.js';

/** The node may have been asked a minute ago, and takes commands with a heartbeat. */
const waitDefaultSeconds = 120;
const askEveryMs = 500;
/** An agent answers within 30 seconds. */
const answerMs = 40_000;

export function diagnoseCommand(program: Command): void {
  program
    .command('diagnose <node>')
    .summary('let the agent of a node check itself and what it dials; a failed check is no failure of the command')
    .addOption(reportOption())
    .option('--timeout <seconds>', `how long to wait (${waitDefaultSeconds})`, wholeNumber('--timeout'))
    .option('--last', 'show the last answer, and do not ask again')
    .addHelpText('after', '\nExample:\n  svcctl diagnose edge-1')
    .action(async (node: string, _options, command: Command) => {
      const { output, timeout, last, ...options } = command.optsWithGlobals<
        ReportOptions & { readonly timeout?: number; readonly last?: true }
      >();
      const { api } = await openSession(options);
      const { id, name } = await findOne(api, typeOf('nodes'), node);
      if (last !== true) await untilAnswered(api, id, (timeout ?? waitDefaultSeconds) * 1_000);
      const found = await dataOf(api.GET('/api/nodes/{id}/diagnostics', { params: { path: { id } } }));
      if (found.at === null) throw refused(`there are no diagnostics of ${name}`);
      await (output === 'text' ? printFound(name, found) : printValue(found, output));
    });
}

/** @throws Failure if the agent cannot answer, or has not in time */
async function untilAnswered(api: Api, id: string, timeoutMs: number): Promise<void> {
  const params = { path: { id } };
  const { name, status, features, agent_version: version } = await dataOf(api.GET('/api/nodes/{id}', { params }));
  if (status !== 'online')
    throw refused(`${name} is ${status}: its agent cannot be asked; --last shows its last answer`);
  // If an agent names no features, they are unknown.
  if (features.length > 0 && !features.includes('diagnostics'))
    throw refused(`${name} runs ${version}, which cannot run diagnostics`);
  const { id: commandId } = await dataOf(
    api.POST('/api/nodes/{id}/commands', { params, body: { command: 'RUN_DIAGNOSTICS' } }),
  );
  let until = performance.now() + timeoutMs;
  for (let delivered = false; ;) {
    const { items } = await dataOf(api.GET('/api/nodes/{id}/commands', { params }));
    const state = items.find((item) => item.id === commandId)?.state;
    if (state === 'answered') return;
    if (state === 'delivered' && !delivered) until = Math.min(until, performance.now() + answerMs);
    delivered = state === 'delivered';
    if (performance.now() >= until && delivered) {
      throw refused(`${name} has taken the command and not answered: its agent, ${version}, may be unable to`);
    }
    if (performance.now() >= until || state === 'expired' || state === undefined) {
      throw refused(`${name} has not taken the command in time: it comes with a heartbeat, and once a minute at most`);
    }
    await sleep(askEveryMs);
  }
}

type Found = Schemas['Diagnostics'];

const columns: readonly Column[] = [
  { title: 'STATE', of: ({ ok }) => (ok === true ? 'ok' : 'FAILED') },
  { title: 'WHAT', of: ({ name }) => name },
  { title: 'FOUND', of: ({ value }) => value },
];

/** What needs attention first. */
async function printFound(name: string, { at, agent_version: version, items, log }: Found): Promise<void> {
  const failed = items.filter(({ ok }) => !ok);
  await line(`${shown(name)}, ${shown(version)}, ${shown(at)}: ${failed.length} of ${items.length} failed`);
  const rows = [...failed, ...items.filter(({ ok }) => ok)];
  // Wide, because half of an error is useless.
  await printList([rows], { format: 'wide', columns, nameOf: (row) => String(row['name']) });
  await line('');
  await line(log.length === 0 ? 'Its log is empty.' : 'The end of its log:');
  for (const text of log) await line(shown(text));
}
