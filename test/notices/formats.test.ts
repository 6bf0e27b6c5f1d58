/**
 * Messages for people, format by format: names that are markup, links or mentions stay names, and a message fits.
 * `docs/contract/notices.md#webhooks-for-people`.
 */
import { describe, expect, test } from 'vitest';
import type { FeedItem } from '../../src/feed/port.js';
import { chatFormats, type ChatFormat } from '../../src/domain/webhook/webhook.js';
import { runSync } from '../../src/kernel/pieces.js';
import { render } from '../../src/notices/formats.js';
import { noticesOf, pingNotice } from '../../src/notices/notice.js';
import { durationOf } from '../../src/notices/sentences.js';

const at = '2026-03-01T12:04:31.000Z';
const id = '01890a5d-ac96-774b-bcce-b302099a8057';

const item = (type: FeedItem['type'], data: object): FeedItem => ({
  type,
  cursor: 'c',
  position: 1,
  at,
  json: JSON.stringify(data),
  about: { type, resources: [], nodes: [], actor: null, readers: 'all' },
  final: null,
});
const status = (name: string, over: object = {}): FeedItem =>
  item('status', {
    resource: { type: 'node', id, name },
    was: 'online',
    status: 'offline',
    since: at,
    reason: null,
    incident: null,
    ...over,
  });

const chain = { type: 'l4_chain', id, name: 'front' };
const command = (action: string, over: object = {}, changed: readonly string[] = []): FeedItem =>
  item(action.startsWith('session') ? 'sign_in' : 'command', {
    id,
    at,
    actor: { type: 'user', id, name: 'anna' },
    action,
    resource: chain,
    changes: changed.map((path) => ({ path })),
    changes_total: changed.length,
    ...over,
  });
const rollout = (was: string | null, state: string, wave = 2, reason: string | null = null): FeedItem =>
  item('rollout', { id, policy: 'careful', entry_id: id, was, state, wave, reason });
const apply = (state: string, ...errors: readonly string[]): FeedItem =>
  item('apply', {
    node_id: id,
    node_name: 'edge-1',
    generation: 7,
    state,
    errors: errors.map((message) => ({ message })),
  });

function textOf(format: ChatFormat, items: readonly FeedItem[], console: string | null = null): string {
  const [notice] = runSync(noticesOf(items, console));
  const { body } = render(format, notice!, { chatId: '1' });
  switch (format) {
    case 'slack':
    case 'mattermost':
    case 'telegram':
      return JSON.parse(body).text;
    case 'discord':
      return JSON.parse(body).content;
    case 'teams': {
      const [{ content }] = JSON.parse(body).attachments;
      return content.body
        .map(({ inlines }: { inlines: { text: string }[] }) => inlines.map(({ text }) => text).join(''))
        .join('\n');
    }
    case 'ntfy':
    case 'email':
      return body.trimEnd();
  }
}

describe('one sentence for each item', () => {
  const began_at = '2026-03-01T12:00:21.000Z';
  const twoNodes = { type: 'node', id: null, name: '2 nodes' };
  test.each([
    ['a node that is offline', status('edge-1'), 'Node `edge-1` is offline, last seen 12:04:31 UTC.'],
    [
      'a node that is back',
      status('edge-1', { was: 'offline', status: 'online', incident: { id, began_at, status: 'offline' } }),
      'Node `edge-1` is online again after 4 min 10 s.',
    ],
    [
      'a node with a long name',
      status('😀'.repeat(201)),
      `Node \`${'😀'.repeat(199)}…\` is offline, last seen 12:04:31 UTC.`,
    ],
    [
      'one with a name that just fits',
      status('😀'.repeat(200)),
      `Node \`${'😀'.repeat(200)}\` is offline, last seen 12:04:31 UTC.`,
    ],
    ['a node that is new', status('edge-1', { was: 'pending', status: 'online' }), 'Node `edge-1` is online.'],
    [
      'a chain that is down',
      status('', {
        resource: chain,
        status: 'down',
        reason: 'upstream "web" is unhealthy, as "relay-1" reports',
        incident: { id, began_at, status: 'degraded' },
      }),
      'Chain `front` is down: upstream `web` is unhealthy, as `relay-1` reports.',
    ],
    [
      'a listener that is missing',
      status('', { resource: chain, status: 'down', reason: 'listener tcp 0.0.0.0:443 of node "edge-1" is missing' }),
      'Chain `front` is down: listener tcp `0.0.0.0:443` of node `edge-1` is missing.',
    ],
    ['a rollout that starts', rollout(null, 'running', 1), 'has started: wave 1 gets the change.'],
    ['its next wave', rollout('baking', 'running'), 'goes on: wave 2 gets the change.'],
    ['one that is resumed', rollout('paused', 'running'), 'goes on with wave 2.'],
    ['a wave that has converged', rollout('running', 'baking'), 'has reached the nodes of wave 2, which now bake.'],
    ['a bake that is resumed', rollout('paused', 'baking'), 'goes on with the bake of wave 2.'],
    ['one that is paused', rollout('running', 'paused'), 'is paused in wave 2.'],
    [
      'one that is halted',
      rollout('running', 'halted', 2, '2 nodes have failed'),
      'is halted in wave 2: `2` nodes have failed.',
    ],
    ['one that has failed', rollout('baking', 'reverting'), 'has failed in wave 2, and is reverted.'],
    ['one that is reverted', rollout('reverting', 'reverted'), 'is reverted.'],
    ['one that is completed', rollout('baking', 'completed'), 'is completed.'],
    ['one that is cancelled', rollout('halted', 'cancelled'), 'is cancelled: its change was reverted.'],
    [
      'a chain that is ok',
      status('', { resource: chain, was: 'down', status: 'ok', incident: { id, began_at, status: 'down' } }),
      'Chain `front` is ok again after 4 min 10 s.',
    ],
    ['a deploy', command('l4_chain.deploy'), '`anna` deployed chain `front`.'],
    ['an edit', command('l4_chain.update', {}, ['hops']), '`anna` changed chain `front`: `hops`.'],
    ['an edit of nothing that is told', command('l4_chain.update'), '`anna` changed chain `front`.'],
    [
      'a large edit',
      command('l4_chain.update', { changes_total: 9 }, [...'abcdefg']),
      '`anna` changed chain `front`: `a`, `b`, `c`, `d`, `e` and 4 more.',
    ],
    [
      'labels of several nodes',
      command('node.label', { resource: twoNodes }, ['labels.region', 'labels.rack', 'labels.region']),
      '`anna` changed labels of 2 nodes: `region`, `rack`.',
    ],
    [
      'a step of a rollout',
      command('rollout.release', { resource: { type: 'rollout', id, name: null } }),
      `\`anna\` released rollout \`${id}\`.`,
    ],
    [
      'a confirmation',
      command('confirmation.confirm', { resource: { type: 'confirmation', id, name: null } }),
      `\`anna\` confirmed change \`${id}\`.`,
    ],
    [
      'a change of what has no name',
      command('service.rotate', { resource: { type: 'service', id: null, name: null } }),
      '`anna` made a second key of the service.',
    ],
    ['a verb without a word', command('l4_chain.bend'), '`anna` did "bend" to chain `front`.'],
    ['a sign-in', command('session.sign_in'), '`anna` signed in.'],
    ['a sign-out', command('session.sign_out'), '`anna` signed out.'],
    ['a refused sign-in', command('session.sign_in_refused'), 'A sign-in of `anna` was refused.'],
    [
      'a session',
      item('session', { node_id: id, node_name: 'edge-1', agent_version: '1.2', instance_id: id }),
      'The agent of node `edge-1` has connected, version `1.2`.',
    ],
    ['an apply', apply('applied'), 'Node `edge-1` applied generation 7.'],
    ['a rejected apply', apply('rejected', 'no'), 'Node `edge-1` rejected generation 7: `no`.'],
    [
      'one with several errors',
      apply('rejected', 'no', 'nor', 'never'),
      'Node `edge-1` rejected generation 7: `no` and 2 more.',
    ],
  ])('%s', (_name, given, sentence) => {
    expect(textOf('mattermost', [given]).replace('A rollout by the policy `careful` ', '')).toBe(sentence);
  });

  test.each([
    [0, '0 s'],
    [45_000, '45 s'],
    [250_000, '4 min 10 s'],
    [7_500_000, '2 h 5 min'],
    [90_000_000, '1 d 1 h'],
    [86_460_000, '1 d'],
  ])('%i ms are %s', (ms, text) => expect(durationOf(ms)).toBe(text));
});

describe('many items', () => {
  test('of one status: the number, twenty names in order, and how many more', () => {
    const names = Array.from({ length: 214 }, (_, index) => `ams-${String(index + 1).padStart(3, '0')}`);
    const text = textOf(
      'slack',
      names.map((name) => status(name)),
    );
    expect(text).toMatch(/^214 nodes are offline: `ams-001`, `ams-002`, .*`ams-020` … and 194 more\.$/);
  });

  test('of a whole window are read in pieces, and the first names are found', () => {
    const of = (index: number): FeedItem => status(`${'x'.repeat(120)}${(index * 7919) % 10_007}`);
    const reading = noticesOf(
      Array.from({ length: 10_000 }, (_, index) => of(index)),
      null,
    );
    let pieces = 1;
    let step = reading.next();
    for (; step.done !== true; step = reading.next()) pieces += 1;
    expect(pieces).toBeGreaterThan(20);
    const [notice] = step.value;
    const text = JSON.parse(render('slack', notice!, { chatId: null }).body).text;
    const numbers = [...text.matchAll(/`x+(\d+)`/g)].map(([, number]) => Number(number));
    expect(numbers).toEqual(Array.from({ length: 20 }, (_, index) => index));
    expect(text).toMatch(/^10,000 nodes are offline: .* … and 9,980 more\.$/);
  });

  test('of different kinds are messages of their own, in the order of their first items', () => {
    const back = { was: 'offline', status: 'online' };
    const notices = runSync(noticesOf([status('a'), status('b', back), status('c'), status('d', back)], null));
    expect(notices.map(({ tone }) => tone)).toEqual(['bad', 'good']);
  });

  test.each(chatFormats)('%s: a message fits, whatever it is of', (format) => {
    const long = '&`<'.repeat(67);
    const session = item('session', { node_id: id, node_name: long, agent_version: long, instance_id: id });
    const given = [
      Array.from({ length: 10_000 }, () => session),
      Array.from({ length: 10_000 }, (_, index) => status(`${index}${long}`)),
      [status('', { resource: chain, status: 'down', reason: `"${long}" `.repeat(20) })],
    ];
    for (const items of given) {
      const text = textOf(format, items, 'https://gateway.example/console');
      const size = format === 'ntfy' ? Buffer.byteLength(text) : text.length;
      expect(size).toBeLessThanOrEqual(format === 'discord' ? 2_000 : 4_000);
      expect(size).toBeGreaterThan(100);
    }
  });
});

const hostile = [
  '*bold* _it_ ~no~',
  '`code`',
  '```',
  '<!channel> <@U123> <https://evil.example|click>',
  '@everyone @here @anna',
  '[click](https://evil.example)',
  '<b>x</b><script>',
  '&lt;b&gt;',
  'a\r\nBcc: x@evil.example\r\n\r\nhello',
  '# heading',
  '\u202Egnp.exe',
  'https://evil.example/',
  'evil.example',
  '|| spoiler ||',
  '"quoted" <!here> "again"',
  '   ',
  '',
];
/** What remains of a message without its code spans. */
const outside = (text: string): string => text.replaceAll(/`[^`\n]+`/g, '·');

test('the title of a message is its sentence without names and reasons', () => {
  const title = (given: FeedItem): string => {
    const [notice] = runSync(noticesOf([given], null));
    const { headers } = render('ntfy', notice!, { chatId: null });
    expect(render('email', notice!, { chatId: null }).subject).toBe(`[gateway control] ${headers['Title']}`);
    return headers['Title'] ?? '';
  };
  expect(title(status('edge-1'))).toBe('Node is offline, last seen 12:04:31 UTC');
  expect(title(status('', { resource: chain, status: 'down', reason: 'listener tcp "[::]:443" is missing' }))).toBe(
    'Chain is down',
  );
});

const console = 'https://gateway.example/console';
const certificate = { type: 'credential', id, name: 'web' };
const others = { type: 'l4_upstream', id, name: 'web' };

/** Priority and link, as ntfy has them. */
test.each([
  ['a node that is offline', [status('a')], '5', `/nodes/${id}`],
  ['several', [status('a'), status('b')], '5', '/nodes'],
  ['one that is back', [status('a', { was: 'offline', status: 'online' })], '3', `/nodes/${id}`],
  ['a chain that is degraded', [status('', { resource: chain, status: 'degraded' })], '4', `/chains/${id}`],
  ['an upstream', [status('', { resource: others, status: 'unhealthy' })], '5', `/upstreams/${id}`],
  ['a certificate', [status('', { resource: certificate, status: '7_days' })], '4', `/credentials/${id}`],
  ['one that has ended', [status('', { resource: certificate, status: 'ended' })], '5', `/credentials/${id}`],
  ['a reject among others', [apply('applied'), apply('rejected', 'no')], '5', '/nodes'],
  ['an apply', [apply('applied')], '2', `/nodes/${id}`],
  ['a halt', [rollout('running', 'halted')], '5', `/audit?entry=${id}`],
  ['a revert by itself', [rollout('baking', 'reverting')], '5', `/audit?entry=${id}`],
  ['an end', [rollout('baking', 'completed')], '3', `/audit?entry=${id}`],
  ['a wave', [rollout('baking', 'running')], '2', `/audit?entry=${id}`],
  ['an upgrade', [item('rollout', { ...JSON.parse(rollout(null, 'running').json), entry_id: null })], '2', '/audit'],
  ['commands', [command('node.create'), command('node.delete')], '2', '/audit'],
] as const)('%s is as loud as it is bad, and leads to its page', (_name, items, priority, page) => {
  const [notice] = runSync(noticesOf(items, console));
  const { headers } = render('ntfy', notice!, { chatId: null });
  expect(headers).toMatchObject({ Priority: priority, Click: console + page });
  expect(headers['Title']).not.toMatch(/[:. ,]$|^$/);
  expect(textOf('slack', items, console)).toContain(`\n<${console}${page}|Open in the console>`);
  expect(textOf('slack', items)).not.toContain('https:');
});

test.each([
  ['slack', { unfurl_links: false }],
  ['telegram', { chat_id: '1', parse_mode: 'HTML', link_preview_options: { is_disabled: true } }],
  ['discord', { allowed_mentions: { parse: [] } }],
  ['mattermost', {}],
] as const)('%s is asked for no preview and no mention', (format, asked) => {
  const { body, headers } = render(format, pingNotice('web'), { chatId: '1' });
  expect(headers).toEqual({ 'content-type': 'application/json' });
  const { text, content = text, ...rest } = JSON.parse(body);
  expect(rest).toEqual(asked);
  expect(content).toMatch(/^This is a test message of the webhook (`web`|<code>web<.code>)\.$/);
});

test('a card of Teams has a button where there is a console', () => {
  const card = (link: string | null) =>
    JSON.parse(render('teams', { ...pingNotice('web'), link }, { chatId: null }).body).attachments[0].content;
  expect(card(null)).not.toHaveProperty('actions');
  expect(card(console).actions).toEqual([{ type: 'Action.OpenUrl', title: 'Open in the console', url: console }]);
});

test('of several, a certificate ends, has ended or is told of twice', () => {
  const of = (name: string, over: object): FeedItem => status('', { resource: { ...certificate, name }, ...over });
  const told = (over: object): string => textOf('mattermost', [of('a', over), of('b', over), of('a', over)]);
  expect(told({ status: '30_days' })).toBe('2 certificates end within 30 days: `a`, `b`.');
  expect(told({ status: 'ended' })).toBe('2 certificates have ended: `a`, `b`.');
});

describe('names cannot act', () => {
  test.each(hostile)('%j', (name) => {
    const items = [
      status(name, { resource: { type: 'l4_chain', id, name }, status: 'down', reason: `node "${name}" is ${name}` }),
    ];
    for (const format of ['slack', 'mattermost', 'discord'] as const) {
      const text = outside(textOf(format, items));
      expect(text).toMatch(/^Chain · is down:? ?[\p{L}· :.,;()]*$/u);
      expect(text).not.toMatch(/[*_~<>@[\]|#`&/]/);
    }
    const html = textOf('telegram', items);
    expect(html.replaceAll(/<\/?code>/g, '')).not.toMatch(/[<>]/);
    expect(html.replaceAll(/&(amp|lt|gt);/g, '')).not.toContain('&');
    for (const format of chatFormats) {
      const [notice] = runSync(noticesOf(items, null));
      const { body, headers, subject } = render(format, notice!, { chatId: '1' });
      for (const value of [...Object.values(headers), subject]) expect(value).toMatch(/^[\x20-\x7e]*$/);
      expect(textOf(format, items).split('\n')).toHaveLength(1);
      expect(body).not.toMatch(/[\u202A-\u202E\u2066-\u2069]/);
    }
    expect(
      JSON.parse(render('discord', runSync(noticesOf(items, null))[0]!, { chatId: null }).body).allowed_mentions,
    ).toEqual({
      parse: [],
    });
  });
});
