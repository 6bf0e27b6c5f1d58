/**
 * Part of `npm run generate`: writes the pages of docs/reference that are derived from the code: settings, metrics,
 * error codes, npm commands and messages. `npm run generate:check` compares them with the committed pages.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { argv, execPath } from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Registry } from 'prom-client';
import { describedVariables } from '../src/app/config/shown.js';
import { errorCatalogue, GrpcStatus } from '../src/kernel/errors.js';
import { maintenanceCommands } from './maintenance/commands.js';
import { noticesPageLines } from './notices-page.js';
import { onEmptyFolder } from './on-empty-folder.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const HELP_TIMEOUT_MS = 60_000;

/** A metric as prom-client holds it: its types lack the labels. */
interface ShownMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

/** The pages by path. Starts a service on an empty folder, to see which metrics it registers. */
export async function referencePages(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ['docs/reference/settings.md', settingsPage()],
    ['docs/reference/metrics.md', metricsPage(await registeredMetrics())],
    ['docs/reference/errors.md', errorsPage()],
    ['docs/reference/commands.md', await commandsPage()],
    ['docs/reference/svcctl.md', commandLinePage()],
    ['docs/reference/notices.md', noticesPage()],
  ]);
}

/** A page that says how it was made. */
const page = (title: string, intro: string, body: readonly string[]): string =>
  [`# ${title}`, '', `${intro} Made by \`npm run generate\`.`, '', ...body, ''].join('\n');

/** A link on one of these pages. @param path from the repository's root */
const link = (text: string, path: string, anchor?: string): string =>
  `[${text}](${posix.relative('docs/reference', path)}${anchor === undefined ? '' : `#${anchor}`})`;
const linkToRunbook = (heading: string): string => link(heading, 'docs/how-to/alerts.md', heading.toLowerCase());

const cell = (text: string): string => text.replaceAll('|', '\\|');
const row = (...cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;

const noticesPage = (): string =>
  page(
    'Messages for people',
    `What a ${link('webhook with a format for people', 'docs/how-to/be-told.md')} sends.`,
    noticesPageLines(linkToRunbook),
  );

function settingsPage(): string {
  const rows = describedVariables().map(({ name, default: fallback, isSecret, meaning }) =>
    row(
      `\`${name}\``,
      fallback === undefined || fallback === '' ? '–' : `\`${fallback}\``,
      meaning,
      isSecret ? 'secret' : '',
    ),
  );
  return page(
    'Settings',
    'Every setting of the service is an environment variable, read once at the start; an empty one counts as not set. ' +
      '`npm start -- --print-config` prints the effective values. A wrong one stops the start with its name and what was ' +
      `expected. The settings of the agent are in its ${link('README', 'src/agent/README.md')}; intervals, the offline ` +
      'threshold and multiplexing are set over REST (`/api/settings/connectivity`). `--help` and `--version` print what ' +
      'their names say.\n\n' +
      'Each secret may be in a file instead, named by `NAME_FILE`, as in `SVC_METRICS_TOKEN_FILE`; a final line break ' +
      'is not part of it. An unknown name that starts with `SVC_` stops the start when it is within two letters of a ' +
      'setting; a start warns of any other.',
    ['| variable | default | meaning | |', '|---|---|---|---|', ...rows],
  );
}

function commandLinePage(): string {
  const program = join(root, 'cli/bin/svcctl.js');
  const { stdout, stderr } = spawnSync(execPath, [program, 'reference'], {
    encoding: 'utf8',
    timeout: HELP_TIMEOUT_MS,
  });
  if (stdout === '') throw new Error(`svcctl reference: ${stderr}`);
  const contract = link('the contract', 'docs/contract/automation.md', 'the-command-line-svcctl');
  return page(
    'svcctl',
    `The command line. Exit codes: 0 done; 1 refused, declined, rejected or offline; 2 there are changes (\`plan\`, \`drift\`); 3 wrong use; 4 the service is not reachable or not trusted; 5 not signed in. It is fixed by ${contract}.`,
    [stdout.trimEnd()],
  );
}

async function registeredMetrics(): Promise<readonly ShownMetric[]> {
  const metrics = new Map<string, ShownMetric>();
  const register = Registry.prototype.registerMetric;
  Registry.prototype.registerMetric = function (metric): void {
    const shown = metric as unknown as ShownMetric;
    metrics.set(shown.name, shown);
    register.call(this, metric);
  };
  try {
    await onEmptyFolder(() => undefined);
  } finally {
    Registry.prototype.registerMetric = register;
  }
  return [...metrics.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** The alerts that watch each metric. */
function alertsOf(): ReadonlyMap<string, readonly string[]> {
  const rules = readFileSync(join(root, 'docs/alerts.yml'), 'utf8').split('- alert: ').slice(1);
  const alerts = new Map<string, Set<string>>();
  for (const rule of rules) {
    const name = rule.slice(0, rule.indexOf('\n'));
    const expression = rule.slice(rule.indexOf('expr:'), rule.indexOf('labels:'));
    for (const [watched] of expression.matchAll(/\b(?:svc|nodejs)_\w+/g)) {
      const metric = watched.replace(/_(?:bucket|sum|count)$/, '');
      alerts.set(metric, (alerts.get(metric) ?? new Set()).add(name));
    }
  }
  return new Map([...alerts].map(([metric, names]) => [metric, [...names]]));
}

function metricsPage(metrics: readonly ShownMetric[]): string {
  const alerts = alertsOf();
  const rows = metrics
    .filter(({ name }) => name.startsWith('svc_') || alerts.has(name))
    .map(({ name, type, labelNames, help }) => {
      const links = (alerts.get(name) ?? []).map(linkToRunbook);
      return row(`\`${name}\``, type, labelNames.map((label) => `\`${label}\``).join(', '), help, links.join(', '));
    });
  return page(
    'Metrics',
    'What `GET /metrics` shows of the service, beside the metrics of the Node.js process. ' +
      `${link('Monitor', 'docs/how-to/monitor.md')} says how to watch them and what some of their labels mean.`,
    ['| metric | type | labels | meaning | alerts |', '|---|---|---|---|---|', ...rows],
  );
}

function errorsPage(): string {
  const grpcName = new Map<number, string>(Object.entries(GrpcStatus).map(([name, code]) => [code, name]));
  const rows = Object.entries(errorCatalogue).map(([code, { http, grpc, meaning }]) =>
    row(`\`${code}\``, String(http), grpcName.get(grpc) ?? String(grpc), meaning),
  );
  return page(
    'Error codes',
    'The `error` of an answer is `CODE: one sentence`, which names the field by its JSON path and says what was expected. ' +
      'It never holds a secret.',
    ['| code | HTTP | gRPC | meaning |', '|---|---|---|---|', ...rows],
  );
}

/** The first sentence of a file's first comment, without the command at its start. */
function firstSentence(file: string): string {
  const comment = /\/\*\*(.*?)\*\//s.exec(readFileSync(join(root, file), 'utf8'))?.[1] ?? '';
  const text = comment.replaceAll(/\n \* ?/g, ' ').trim();
  const sentence = /^(?:Part of `npm run [\w:]+`: |`npm run [^`]*`: )?(.*?[^.\d])\.(?:\s|$)/s.exec(text)?.[1] ?? text;
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`;
}

async function commandsPage(): Promise<string> {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const maintenance = await Promise.all(
    maintenanceCommands.map(async ({ name, load }) => [`### ${name}`, '', '```', (await load()).usage, '```', '']),
  );
  const others = Object.entries(scripts).filter(([name]) => !maintenanceCommands.some((one) => one.name === name));
  return page('Commands', 'The npm commands of this repository.', [
    '## Maintenance',
    '',
    'Each works on the installation that the environment names, with the same variables as the service. Only one process can',
    'open embedded stores: stop the service first, else the command refuses. With EventStoreDB and MongoDB the service may keep',
    'running, except for `keys:rotate-master`, `keys:rotate-sealing` and an import. Progress goes to standard error. Exit codes:',
    '0 done, 1 failed or a problem was found, 2 wrong arguments, 130 interrupted. All but `restore` are npm scripts, too:',
    '`npm run log:export -- FILE`.',
    '',
    ...maintenance.flat(),
    '## Everything else',
    '',
    '| command | what it does |',
    '|---|---|',
    ...others.map(([name, command]) =>
      row(`\`npm ${name === 'start' || name === 'test' ? '' : 'run '}${name}\``, meaningOf(command)),
    ),
  ]);
}

/** What a script of package.json does: the first sentence of the program that it runs, else the script itself. */
function meaningOf(command: string): string {
  const built = /exec .* dist\/(\S+)\.js/.exec(command)?.[1];
  const file =
    built === undefined
      ? /^(?:npm run --silent build && )?tsx (?:watch )?(\S+\.ts)$/.exec(command)?.[1]
      : `${built}.ts`;
  return file === undefined ? `\`${command}\`` : firstSentence(file);
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) {
  for (const [path, text] of await referencePages()) writeFileSync(join(root, path), text);
}
