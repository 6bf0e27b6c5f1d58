/** status, top: how the fleet is, once and live. */
import { stdin, stdout } from 'node:process';
import type { Command } from 'commander';
import { Option } from 'commander';
import { usage } from '../exit.js';
import type { Row } from '../output.js';
import { line, once, paint, printList, printValue, shown, write } from '../output.js';
import { pagesOf, typeOf } from '../resources.js';
import type { Api, Schemas } from '../service.js';
import { dataOf } from '../service.js';
import type { GlobalOptions } from '../session.js';
import { openSession } from '../session.js';
import { followFeed } from './events.js';

const nodes = typeOf('nodes');
const redrawEveryMs = 2_000;

export function watchCommands(program: Command): void {
  program
    .command('status')
    .summary('the figures of the dashboard, and what needs somebody')
    .addOption(new Option('-o, --output <format>', 'how to print it').choices(['text', 'json', 'yaml']).default('text'))
    .addHelpText('after', '\nExample:\n  svcctl status')
    .action(async (_options, command: Command) => {
      const { output, ...options } = command.optsWithGlobals<
        GlobalOptions & { readonly output: 'text' | 'json' | 'yaml' }
      >();
      const { api } = await openSession(options);
      const stats = await dataOf(api.GET('/api/dashboard/stats'));
      if (output !== 'text') return printValue(stats, output);
      await printFigures(stats);
      await printMatters(stats.matters);
    });

  program
    .command('top')
    .summary('the nodes, live; q ends it')
    .addHelpText('after', '\nExample:\n  svcctl top')
    .action(async (_options, command: Command) => {
      if (!stdout.isTTY || !stdin.isTTY) throw usage('top: expected a terminal; svcctl get nodes prints a table once');
      const { api } = await openSession(command.optsWithGlobals<GlobalOptions>());
      await top(api);
    });
}

/** Each group of figures in a line. */
async function printFigures(stats: object): Promise<void> {
  for (const [group, figures] of Object.entries(stats as Readonly<Record<string, unknown>>)) {
    if (Array.isArray(figures) || typeof figures !== 'object' || figures === null) continue;
    await line(`${group.padEnd(14)}${textsOf(figures as Figures).join('  ')}`);
  }
}

type Figures = Readonly<Record<string, unknown>>;
const faults = ['offline', 'rejected', 'missing', 'unexpected', 'expired', 'down', 'degraded', 'unhealthy'];

/** A group within a group, such as the health of chains, has its figures in the same line. */
function textsOf(figures: Figures, within = ''): readonly string[] {
  return Object.entries(figures).flatMap(([name, value]) => {
    if (typeof value === 'object' && value !== null) return textsOf(value as Figures, `${name} `);
    const bad = faults.includes(name) && value !== 0;
    return `${within}${name} ${bad ? paint('red', shown(value)) : shown(value)}`;
  });
}

const colours = { down: 'red', degraded: 'yellow', soon: 'dim' } as const;

/** What needs somebody, each as a sentence, the worst first. */
async function printMatters(matters: Schemas['DashboardStats']['matters']): Promise<void> {
  if (matters.length > 0) await line('');
  for (const { severity, sentence } of matters) {
    await line(`${paint(colours[severity], severity.padEnd(14))}${shown(sentence)}`);
  }
}

/** Draws the nodes on a screen of its own until somebody presses q. */
async function top(api: Api): Promise<void> {
  let drawing = false;
  let stale = true;
  const draw = async (): Promise<void> => {
    if (drawing || !stale) return;
    drawing = true;
    stale = false;
    try {
      await drawNodes(api);
    } finally {
      drawing = false;
    }
  };
  const ended = new Promise<void>((resolve, reject) => {
    const tick = setInterval(() => {
      stale = true;
      draw().catch(reject);
    }, redrawEveryMs);
    followFeed(api, { after: 'now', types: 'session,apply,status' }, () => {
      stale = true;
      draw().catch(reject);
    }).catch(reject);
    const onKey = (key: Buffer): void => {
      // Without echo, Ctrl-C and Escape come as characters too.
      if (!['q', '\u0003', '\u001b'].includes(key.toString('latin1'))) return;
      clearInterval(tick);
      resolve();
    };
    stdin.on('data', onKey);
  });
  stdin.setRawMode(true);
  stdin.resume();
  stdout.write('\u001b[?1049h\u001b[?25l');
  try {
    await Promise.race([draw().then(() => ended), ended]);
  } finally {
    stdout.write('\u001b[?25h\u001b[?1049l');
    stdin.setRawMode(false);
    stdin.pause();
  }
}

async function drawNodes(api: Api): Promise<void> {
  const stats = await dataOf(api.GET('/api/dashboard/stats'));
  const room = Math.max(1, stdout.rows - 4);
  const rows: Row[] = [];
  for await (const page of pagesOf(api, nodes)) {
    rows.push(...page);
    if (rows.length >= room) break;
  }
  const { total, online, converged, rejected } = stats.nodes;
  await write('\u001b[H\u001b[2J');
  await line(
    paint('bold', `${total} nodes  ${online} online  ${converged} converged  ${rejected} rejected`) + '  q ends',
  );
  await line('');
  await printList(once(rows.slice(0, room)), {
    format: 'table',
    columns: nodes.columns,
    nameOf: ({ name }) => String(name),
  });
  if (total > room) await line(paint('dim', `and ${total - room} more`));
}
