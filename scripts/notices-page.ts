/** The page of messages for people: one of each kind, in each format, as the service writes them. */
import { chatFormats } from '../src/domain/webhook/webhook.js';
import type { FeedContent, FeedItem } from '../src/feed/port.js';
import { runSync } from '../src/kernel/pieces.js';
import { render } from '../src/notices/formats.js';
import { noticesOf } from '../src/notices/notice.js';

const at = '2026-03-01T12:04:31.000Z';
const id = '01890a5d-ac96-774b-bcce-b302099a8057';
const incident = (status: string) => ({ id, began_at: '2026-03-01T12:00:21.000Z', status });
const status = (
  type: 'node' | 'l4_chain' | 'l4_upstream' | 'credential',
  name: string,
  fields: Pick<Extract<FeedContent, { type: 'status' }>['data'], 'was' | 'status' | 'reason' | 'incident'>,
): FeedContent => ({ type: 'status', data: { resource: { type, id, name }, since: at, ...fields } });
const entry = (
  action: string,
  resource: { readonly type: string; readonly id?: null; readonly name: string | null },
  paths: string[] = [],
) =>
  ({
    type: action.startsWith('session.') ? 'sign_in' : 'command',
    data: {
      id,
      at,
      actor: { type: 'user', id, name: 'anna' },
      token: null,
      action,
      resource: { id, ...resource },
      changes: paths.map((path) => ({ path, before: null, after: null })),
      changes_total: paths.length,
      request_id: '',
      position: '',
      reverts: null,
      confirm: null,
    },
  }) satisfies FeedContent;
type Step = Extract<FeedContent, { readonly type: 'rollout' }>['data'];
const step = (was: Step['was'], state: Step['state'], wave: number, reason: string | null = null): FeedContent => ({
  type: 'rollout',
  data: { id, policy: 'careful', entry_id: id, was, state, wave, reason },
});
const node = { node_id: id, node_name: 'relay-1' };
const why = 'upstream "web" is unhealthy, as "relay-1" reports';

const examples: readonly FeedContent[] = [
  status('node', 'edge-1', { was: 'online', status: 'offline', reason: null, incident: incident('offline') }),
  status('node', 'edge-1', { was: 'offline', status: 'online', reason: null, incident: incident('offline') }),
  status('node', 'edge-2', { was: 'pending', status: 'online', reason: null, incident: null }),
  status('l4_chain', 'front', { was: 'ok', status: 'down', reason: why, incident: incident('down') }),
  status('l4_chain', 'front', {
    was: 'down',
    status: 'degraded',
    reason: 'node "edge-1" has rejected its newest configuration',
    incident: incident('down'),
  }),
  status('l4_chain', 'front', { was: 'degraded', status: 'ok', reason: null, incident: incident('down') }),
  status('l4_upstream', 'web', {
    was: 'healthy',
    status: 'unhealthy',
    reason: 'node "relay-1" reports so',
    incident: incident('unhealthy'),
  }),
  status('l4_upstream', 'web', { was: 'unhealthy', status: 'healthy', reason: null, incident: incident('unhealthy') }),
  status('credential', 'www', {
    was: 'valid',
    status: '30_days',
    reason: 'it ends on 2026-03-31T12:00:00.000Z',
    incident: null,
  }),
  status('credential', 'www', {
    was: '1_day',
    status: 'ended',
    reason: 'it ended on 2026-03-01T12:00:00.000Z',
    incident: incident('ended'),
  }),
  entry('l4_chain.create', { type: 'l4_chain', name: 'front' }),
  entry('l4_chain.update', { type: 'l4_chain', name: 'front' }, ['hops', 'target']),
  entry('l4_chain.deploy', { type: 'l4_chain', name: 'front' }),
  entry('node.label', { type: 'node', id: null, name: '3 nodes' }, ['labels.region', 'labels.rack']),
  entry('node.command', { type: 'node', id: null, name: '3 nodes' }),
  entry('node.revert', { type: 'node', name: 'edge-1' }),
  entry('fleet.apply', { type: 'fleet', name: 'edge-eu' }),
  entry('session.sign_in', { type: 'session', name: 'anna' }),
  entry('session.sign_in_refused', { type: 'session', name: 'anna' }),
  step(null, 'running', 1),
  step('running', 'baking', 1),
  step('baking', 'running', 2),
  step('running', 'paused', 2),
  step('running', 'halted', 2, '1 node failed by wave 2; the policy allows 0'),
  step('running', 'reverting', 2, '1 node failed by wave 2; the policy allows 0'),
  step('reverting', 'reverted', 2),
  step('baking', 'completed', 3),
  step('paused', 'cancelled', 2),
  { type: 'session', data: { ...node, agent_version: 'reference-agent 0.2.0', instance_id: id } },
  { type: 'apply', data: { ...node, generation: 17, state: 'applied', errors: [] } },
  {
    type: 'apply',
    data: {
      ...node,
      generation: 18,
      state: 'rejected',
      errors: [
        {
          resource_type: 'l4_chain',
          resource_id: id,
          path: 'hops[0].listen_port',
          message: 'cannot listen on tcp 0.0.0.0 443',
        },
      ],
    },
  },
];

/** Headings of the runbook by status. */
const runbooks: ReadonlyMap<string, string> = new Map([
  ['offline', 'NodeOffline'],
  ['down', 'ChainDown'],
  ['degraded', 'ChainDegraded'],
  ['unhealthy', 'UpstreamUnhealthy'],
  ['30_days', 'CertificatesEnd'],
  ['ended', 'CertificatesEnd'],
]);

const runbookOf = (example: FeedContent): string | undefined =>
  example.type === 'status' ? runbooks.get(example.data.status) : undefined;

const itemOf = ({ type, data }: FeedContent): FeedItem => ({
  type,
  cursor: '',
  position: 0,
  at,
  json: JSON.stringify(data),
  about: { type, resources: [], nodes: [], actor: null, readers: 'all' },
  final: null,
});

/** The lines below the title. @param linkTo a heading of the runbook */
export function noticesPageLines(linkTo: (heading: string) => string): readonly string[] {
  const [down, ...others] = [
    examples[3],
    status('l4_chain', 'back', { was: 'ok', status: 'down', reason: why, incident: incident('down') }),
  ];
  const textOf = (items: readonly FeedContent[]): string => {
    const [notice] = runSync(noticesOf(items.map(itemOf), null));
    return notice === undefined ? '' : JSON.parse(render('mattermost', notice, { chatId: null }).body).text;
  };
  const several = [down, ...others].flatMap((one) => one ?? []);
  const bodies = chatFormats.flatMap((format) => {
    const [notice] = runSync(
      noticesOf(
        [down].flatMap((one) => (one === undefined ? [] : [itemOf(one)])),
        'https://gateway.example/console',
      ),
    );
    if (notice === undefined) return [];
    const { headers, body, subject } = render(format, notice, { chatId: '-1001234567890' });
    const head =
      subject === '' ? Object.entries(headers).map(([name, value]) => `${name}: ${value}`) : [`Subject: ${subject}`];
    return [`### ${format}`, '', '```text', ...head, '', body.trimEnd(), '```', ''];
  });
  return [
    '## Sentences',
    '',
    'In Mattermost, where names stand in code spans; other formats write them in their own way.',
    '',
    '| type | sentence | what to do |',
    '|---|---|---|',
    ...examples.map((example) => {
      const heading = runbookOf(example);
      return `| \`${example.type}\` | ${textOf([example])} | ${heading === undefined ? '' : linkTo(heading)} |`;
    }),
    `| \`status\`, several | ${textOf(several)} | |`,
    '',
    '## One message in each format',
    '',
    ...bodies,
  ];
}
