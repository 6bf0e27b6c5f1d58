/**
 * Messages for people, format by format: names that are markup, links or mentions stay names, and a message fits.
 * `docs/contract/notices.md#webhooks-for-people`.
 */
import { describe, expect, test } from 'vitest';
import type { FeedItem } from '../../src/feed/port.js';
import { chatFormats, type ChatFormat } from '../../src/domain/webhook/webhook.js';
import { runSync } from '../../src/kernel/pieces.js';
import { render } from '../../src/notices/formats.js';
import { noticesOf } from '../../src/notices/notice.js';
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
  const chain = { type: 'l4_chain', id, name: 'front' };
  const entry = { id, at, actor: { type: 'user', id, name: 'anna' }, changes: [], changes_total: 0 };
  test.each([
    ['a node that is offline', status('edge-1'), 'Node `edge-1` is offline, last seen 12:04:31 UTC.'],
    [
      'a node that is back',
      status('edge-1', { was: 'offline', status: 'online', incident: { id, began_at, status: 'offline' } }),
      'Node `edge-1` is online again after 4 min 10 s.',
    ],
    ['a node that is new', status('edge-1', { was: 'pending', status: 'online' }), 'Node `edge-1` is online.'],
    [
      'a chain that is down',
      status('', { resource: chain, status: 'down', reason: 'upstream "web" is unhealthy, as "relay-1" reports' }),
      'Chain `front` is down: upstream `web` is unhealthy, as `relay-1` reports.',
    ],
    [
      'a listener that is missing',
      status('', { resource: chain, status: 'down', reason: 'listener tcp 0.0.0.0:443 of node "edge-1" is missing' }),
      'Chain `front` is down: listener tcp `0.0.0.0:443` of node `edge-1` is missing.',
    ],
    [
      'a rollout that starts',
      item('rollout', { id, policy: 'careful', entry_id: id, was: null, state: 'running', wave: 1, reason: null }),
      'A rollout by the policy `careful` has started: wave 1 gets the change.',
    ],
    [
      'a rollout that is halted',
      item('rollout', {
        id,
        policy: 'careful',
        entry_id: id,
        was: 'running',
        state: 'halted',
        wave: 2,
        reason: '2 nodes have failed',
      }),
      'A rollout by the policy `careful` is halted in wave 2: `2` nodes have failed.',
    ],
    [
      'a chain that is ok',
      status('', { resource: chain, was: 'down', status: 'ok', incident: { id, began_at, status: 'down' } }),
      'Chain `front` is ok again after 4 min 10 s.',
    ],
    [
      'a deploy',
      item('command', { ...entry, action: 'l4_chain.deploy', resource: chain }),
      '`anna` deployed chain `front`.',
    ],
    [
      'an edit',
      item('command', {
        ...entry,
        action: 'l4_chain.update',
        resource: chain,
        changes: [{ path: 'hops' }],
        changes_total: 1,
      }),
      '`anna` changed chain `front`: `hops`.',
    ],
    [
      'labels of several nodes',
      item('command', {
        ...entry,
        action: 'node.label',
        resource: { type: 'node', id: null, name: '2 nodes' },
        changes: ['region', 'rack', 'region'].map((key) => ({ path: `labels.${key}` })),
        changes_total: 3,
      }),
      '`anna` changed labels of 2 nodes: `region`, `rack`.',
    ],
    [
      'a step of a rollout',
      item('command', { ...entry, action: 'rollout.release', resource: { type: 'rollout', id, name: null } }),
      `\`anna\` released rollout \`${id}\`.`,
    ],
    [
      'a confirmation',
      item('command', { ...entry, action: 'confirmation.confirm', resource: { type: 'confirmation', id, name: null } }),
      `\`anna\` confirmed change \`${id}\`.`,
    ],
    ['a sign-in', item('sign_in', { ...entry, action: 'session.sign_in', resource: chain }), '`anna` signed in.'],
    [
      'a session',
      item('session', { node_id: id, node_name: 'edge-1', agent_version: '1.2', instance_id: id }),
      'The agent of node `edge-1` has connected, version `1.2`.',
    ],
    [
      'a rejected apply',
      item('apply', {
        node_id: id,
        node_name: 'edge-1',
        generation: 7,
        state: 'rejected',
        errors: [{ message: 'no' }],
      }),
      'Node `edge-1` rejected generation 7: `no`.',
    ],
  ])('%s', (_name, given, sentence) => {
    expect(textOf('mattermost', [given])).toBe(sentence);
  });

  test.each([
    [0, '0 s'],
    [45_000, '45 s'],
    [250_000, '4 min 10 s'],
    [7_500_000, '2 h 5 min'],
    [90_000_000, '1 d 1 h'],
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
      [status(long, { reason: `"${long}" `.repeat(20) })],
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
  const chain = { type: 'l4_chain', id, name: 'front' };
  expect(title(status('', { resource: chain, status: 'down', reason: 'listener tcp "[::]:443" is missing' }))).toBe(
    'Chain is down',
  );
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
