/** top: a full-screen table of the nodes, the worst first, until q is pressed. */
import process, { stdin, stdout } from 'node:process';
import { emitKeypressEvents } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { Failure, exitCodes, usage } from '../exit.js';
import { paint, shown } from '../output.js';
import { pagesOf, typeOf } from '../resources.js';
import { isBusy, type Api } from '../service.js';
import { openSession, type GlobalOptions } from '../session.js';
import { cut, layoutOf, type Row } from '../table.js';
import { followFeed } from './events.js';

const nodes = typeOf('nodes');
const columns = nodes.columns.filter(({ wide }) => wide === undefined);
/** The feed announces most changes; the others show after this time at the latest. */
const refresh = { leastMs: 2_000, mostMs: 10_000 };
const orders = ['worst', ...columns.map(({ title }) => title.toLowerCase())];
const help = 'q quit  / filter  s sort  r reverse  ↑↓ scroll';

export function topCommand(program: Command): void {
  program
    .command('top')
    .summary('show the nodes live, the worst first; q quits')
    .description('Keys: s sorts by another column, r reverses the order, / filters, arrows and pages scroll, q quits.')
    .addHelpText('after', '\nExample:\n  svcctl top')
    .action(async (_options, command: Command) => {
      if (!stdout.isTTY || !stdin.isTTY) throw usage('top: expected a terminal; svcctl get nodes prints a table once');
      const { api } = await openSession(command.optsWithGlobals<GlobalOptions>());
      await top(api);
    });
}

interface View {
  rows: readonly Row[];
  /** An index of `orders`. */
  order: number;
  reversed: boolean;
  filter: string;
  /** Whether the filter is being typed. */
  typing: boolean;
  /** How many rows are scrolled past. */
  above: number;
  /** Why the rows are outdated; null when they are current. */
  trouble: string | null;
}

async function top(api: Api): Promise<void> {
  const view: View = { rows: [], order: 0, reversed: false, filter: '', typing: false, above: 0, trouble: null };
  let loaded = false;
  const draw = (): void => {
    if (loaded) stdout.write(frameOf(view, stdout.columns || 80, stdout.rows || 24));
  };
  const ended = new AbortController();
  const end = (): void => ended.abort();
  const onKey = (typed: string | undefined, key: Key): void => {
    if (keyEnds(view, typed, key)) end();
    else draw();
  };
  const signals = ['SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.once(signal, end);
  stdin.setRawMode(true);
  emitKeypressEvents(stdin);
  stdin.on('keypress', onKey).resume();
  stdout.on('resize', draw).write('\u001b[?1049h\u001b[?25l');
  try {
    await Promise.race([
      load(api, view, ended.signal, () => {
        loaded = true;
        draw();
      }),
      new Promise<void>((resolve) => ended.signal.addEventListener('abort', () => resolve())),
    ]);
  } finally {
    for (const signal of signals) process.off(signal, end);
    stdout.off('resize', draw).write('\u001b[?25h\u001b[?1049l');
    stdin.off('keypress', onKey).setRawMode(false).pause();
  }
}

/** Reads the nodes whenever the feed announces a change. @throws Failure when retrying is pointless */
async function load(api: Api, view: View, ended: AbortSignal, onLoaded: () => void): Promise<void> {
  let wake = (): void => undefined;
  let changed = new Promise<void>((resolve) => (wake = resolve));
  const followed = followFeed(
    api,
    { after: 'now', types: 'command,session,apply,status' },
    () => wake(),
    () => undefined,
  );
  const reading = async (): Promise<void> => {
    while (!ended.aborted) {
      changed = new Promise<void>((resolve) => (wake = resolve));
      try {
        const rows: Row[] = [];
        for await (const page of pagesOf(api, nodes)) rows.push(...page);
        Object.assign(view, { rows, trouble: null });
      } catch (error) {
        if (!(error instanceof Failure) || (error.exitCode !== exitCodes.unreachable && !isBusy(error))) throw error;
        view.trouble = error.message;
      }
      onLoaded();
      await sleep(refresh.leastMs);
      await Promise.race([changed, sleep(refresh.mostMs - refresh.leastMs)]);
    }
  };
  await Promise.race([followed, reading()]);
}

interface Key {
  readonly name?: string;
  readonly ctrl?: boolean;
}

/** Handles a key. @returns whether it ends the command */
function keyEnds(view: View, typed: string | undefined, { name = '', ctrl = false }: Key): boolean {
  const room = roomOf(stdout.rows || 24);
  if (ctrl && (name === 'c' || name === 'd')) return true;
  if (view.typing) {
    if (name === 'return' || name === 'enter') view.typing = false;
    else if (name === 'escape') Object.assign(view, { typing: false, filter: '' });
    else if (name === 'backspace') view.filter = view.filter.slice(0, -1);
    else if (!ctrl && typed !== undefined && /^[^\p{Cc}]+$/u.test(typed)) view.filter += typed;
    return false;
  }
  const scrolls: Readonly<Record<string, number>> = {
    up: -1,
    k: -1,
    down: 1,
    j: 1,
    pageup: -room,
    pagedown: room,
    space: room,
    home: -Infinity,
    end: Infinity,
  };
  const scroll = scrolls[name];
  if (scroll !== undefined) {
    const most = Math.max(0, visible(view).length - room);
    view.above = Math.min(most, Math.max(0, view.above + scroll));
  } else if (name === 's') Object.assign(view, { order: (view.order + 1) % orders.length, above: 0 });
  else if (name === 'r') view.reversed = !view.reversed;
  else if (typed === '/') Object.assign(view, { typing: true, above: 0 });
  else return name === 'q' || name === 'escape';
  return false;
}

/** Rows of the terminal, without the head and the foot. */
const roomOf = (height: number): number => Math.max(1, height - 4);

function frameOf(view: View, width: number, height: number): string {
  const all = visible(view);
  const above = Math.min(view.above, Math.max(0, all.length - roomOf(height)));
  const rows = all.slice(above, above + roomOf(height));
  const layout = layoutOf(columns, rows, width, shown);
  const tally = (status: string): string => `${view.rows.filter((row) => row['status'] === status).length} ${status}`;
  const order = `by ${orders[view.order]}${view.reversed ? ', reversed' : ''}`;
  const head = `${view.rows.length} nodes  ${tally('online')}  ${tally('offline')}  ${tally('pending')}  ${order}`;
  const filter = view.typing || view.filter !== '' ? `  /${shown(view.filter, '')}${view.typing ? '_' : ''}` : '';
  const below = all.length - above - rows.length;
  const foot = [help, ...(above > 0 ? [`${above} above`] : []), ...(below > 0 ? [`${below} below`] : [])];
  const lines = [
    paint('bold', cut(head + filter, width)),
    view.trouble === null ? '' : paint('red', cut(shown(view.trouble), width)),
    paint('bold', layout.head),
    ...rows.map((row) => colouredBy(badness(row), layout.lineOf(row))),
    paint('dim', cut(foot.join('  '), width)),
  ];
  return `\u001b[H${lines.map((one) => `${one}\u001b[K`).join('\n')}\u001b[J`;
}

const colouredBy = (rank: number, text: string): string =>
  rank < failing ? paint('red', text) : rank < healthy ? paint('yellow', text) : text;

/** The nodes that match the filter, in order. */
function visible({ rows, filter, order, reversed }: View): readonly Row[] {
  const wanted = filter.toLowerCase();
  const left = rows.filter(({ name, address, status, apply, labels }) =>
    JSON.stringify([name, address, status, apply, labels]).toLowerCase().includes(wanted),
  );
  const column = columns[order - 1];
  const compare = (a: Row, b: Row): number =>
    (column === undefined ? badness(a) - badness(b) : byText(column.of(a), column.of(b))) ||
    byText(a['name'], b['name']);
  const sorted = left.toSorted(compare);
  return reversed ? sorted.toReversed() : sorted;
}

const collator = new Intl.Collator('en', { numeric: true });
const byText = (a: unknown, b: unknown): number => collator.compare(String(a ?? ''), String(b ?? ''));

/** Ranks below this have failed; the others wait for something. */
const failing = 3;
const healthy = 5;

/** How urgent a node is: 0 is the worst. */
function badness({ status, apply, listeners }: Row): number {
  const { state } = apply as { readonly state: string };
  const { failed = [] } = (listeners ?? {}) as { readonly failed?: readonly unknown[] };
  if (status === 'offline') return 0;
  if (state === 'rejected') return 1;
  if (failed.length > 0) return 2;
  if (status === 'pending') return 4;
  return state === 'applied' ? healthy : failing;
}
