/** status: the figures of the dashboard. */
import type { Command } from 'commander';
import stringWidth from 'string-width';
import { reportOption, type ReportOptions } from '../options.js';
import { line, paint, printValue, shown, terminalWidth } from '../output.js';
import { dataOf, type Schemas } from '../service.js';
import { openSession } from '../session.js';

export function statusCommand(program: Command): void {
  program
    .command('status')
    .summary('show the figures of the dashboard, and what needs attention')
    .addOption(reportOption())
    .addHelpText('after', '\nExample:\n  svcctl status')
    .action(async (_options, command: Command) => {
      const { output, ...options } = command.optsWithGlobals<ReportOptions>();
      const { api } = await openSession(options);
      const stats = await dataOf(api.GET('/api/dashboard/stats'));
      if (output !== 'text') return printValue(stats, output);
      await printFigures(stats);
      await printMatters(stats.matters);
    });
}

/** One line for each group of figures, wrapped where the terminal is narrow. */
async function printFigures(stats: object): Promise<void> {
  for (const [group, figures] of Object.entries(stats as Readonly<Record<string, unknown>>)) {
    if (Array.isArray(figures) || typeof figures !== 'object' || figures === null) continue;
    await line(wrapped(group, textsOf(figures as Figures), '  ', terminalWidth()));
  }
}

const titleWidth = 14;

/** A title with texts beside it, wrapped to `room` columns. */
function wrapped(title: string, texts: readonly string[], gap: string, room = Number.POSITIVE_INFINITY): string {
  const lines: string[] = [];
  for (const text of texts) {
    const last = lines.at(-1);
    if (last !== undefined && titleWidth + stringWidth(last + gap + text) <= room) lines.push(lines.pop() + gap + text);
    else lines.push(text);
  }
  return title.padEnd(titleWidth) + lines.join(`\n${' '.repeat(titleWidth)}`);
}

type Figures = Readonly<Record<string, unknown>>;
const faults = ['offline', 'rejected', 'missing', 'unexpected', 'expired', 'down', 'degraded', 'unhealthy'];

/** Nested groups, such as the health of chains, go into the same line. */
function textsOf(figures: Figures, within = ''): readonly string[] {
  return Object.entries(figures).flatMap(([name, value]) => {
    if (typeof value === 'object' && value !== null) return textsOf(value as Figures, `${name} `);
    const bad = faults.includes(name) && value !== 0;
    return `${within}${name} ${bad ? paint('red', shown(value)) : shown(value)}`;
  });
}

const colours = { down: 'red', degraded: 'yellow', soon: 'dim' } as const;

/** What needs attention, one sentence each, the worst first. */
async function printMatters(matters: Schemas['DashboardStats']['matters']): Promise<void> {
  if (matters.length > 0) await line('');
  for (const { severity, sentence } of matters) {
    const text = wrapped(severity, shown(sentence).split(' '), ' ', terminalWidth());
    await line(text.replace(severity, paint(colours[severity], severity)));
  }
}
