/** Audit entries as sentences (`docs/contract/console.md#pages`). */
import { describe, expect, test } from 'vitest';
import { entrySentence, type Entry } from '../../console/src/shared/audit/entry-words.js';
import { formatTime } from '../../console/src/shared/ui/format.js';
import { fieldWords } from '../../console/src/shared/audit/field-words.js';

const anna = { type: 'user', id: 'a', name: 'anna' } as const;

function entry(action: string, fields: Partial<Entry> = {}): Entry {
  const [type = ''] = action.split('.');
  const changes = fields.changes ?? [];
  const resource = { type, id: 'r', name: 'web' };
  return {
    actor: anna,
    token: null,
    reverts: null,
    action,
    resource,
    changes_total: changes.length,
    ...fields,
    changes,
  };
}
const change = (path: string, before: unknown, after: unknown): Entry['changes'][number] => ({ path, before, after });

describe('an entry reads as a sentence', () => {
  test.each<[string, Entry]>([
    [
      'anna changed endpoint of upstream web: a:80 → b:80',
      entry('l4_upstream.update', { changes: [change('endpoint', 'a:80', 'b:80')] }),
    ],
    [
      'anna changed target of chain web: an upstream → b:80',
      entry('l4_chain.update', {
        changes: [change('target', { upstream_id: '01a228d4-c9b7-79d4-89c5-dccb2e353cff' }, { endpoint: 'b:80' })],
      }),
    ],
    [
      'anna added L3 network web: mtu 1380',
      entry('l3_network.create', {
        changes: [change('credential_id', null, '01a228d4-bfd2-718a-96f4-0ecba16c613c'), change('mtu', null, 1_380)],
      }),
    ],
    [
      'anna added user web: role operator',
      entry('user.create', {
        changes: [change('username', null, 'web'), change('role', null, 'operator'), change('password', null, '***')],
      }),
    ],
    [
      `anna added API token web: expires at ${formatTime('2030-02-27T21:14:12.822Z')}`,
      entry('api_token.create', { changes: [change('expires_at', null, '2030-02-27T21:14:12.822Z')] }),
    ],
    [
      'anna changed enabled of chain web: on → off',
      entry('l4_chain.update', { changes: [change('enabled', true, false)] }),
    ],
    [
      'anna changed port of hop 1, description of chain web: port of hop 1 443 → 8443; description none → front door',
      entry('l4_chain.update', {
        changes: [change('hops[0].listen_port', 443, 8443), change('description', null, 'front door')],
      }),
    ],
    [
      'anna changed upstream web: endpoint, server name of TLS, key pins of TLS and 2 more fields',
      entry('l4_upstream.update', {
        changes: ['endpoint', 'tls.server_name', 'tls.spki_pins_sha256', 'enabled', 'name'].map((path) =>
          change(path, 1, 2),
        ),
      }),
    ],
    ['anna deployed chain web', entry('l4_chain.deploy', { changes: [change('nodes', null, ['x'])] })],
    // What was left unset says nothing.
    [
      'anna added upstream web: endpoint a:80',
      entry('l4_upstream.create', {
        changes: [
          change('name', null, 'web'),
          change('endpoint', null, 'a:80'),
          change('server_names', null, []),
          change('tls', null, null),
        ],
      }),
    ],
    ['anna deleted node web', entry('node.delete', { changes: [change('name', 'web', null)] })],
    [
      'anna sent a command to node web: RELOAD_CONFIG',
      entry('node.command', { changes: [change('command', null, 'RELOAD_CONFIG')] }),
    ],
    ['anna signed in', entry('session.sign_in')],
    [
      'anna changed heartbeat interval (s) of settings: 10 → 2',
      entry('connectivity.update', {
        resource: { type: 'connectivity', id: 'connectivity', name: 'connectivity' },
        changes: [change('heartbeat_interval_secs', 10, 2)],
      }),
    ],
    ['anna (token ci) deleted L3 network web', entry('l3_network.delete', { token: { id: 't', name: 'ci' } })],
    [
      'anna undid an entry: changed endpoint of upstream web: b:80 → a:80',
      entry('l4_upstream.update', { reverts: 'e', changes: [change('endpoint', 'b:80', 'a:80')] }),
    ],
    [
      'the service added node web',
      entry('node.create', { actor: { type: 'system', id: null, name: 'join' }, token: { id: 't', name: 'rack 7' } }),
    ],
  ])('%s', (sentence, one) => expect(entrySentence(one)).toBe(sentence));

  test('a long value is cut, and an action without a word of its own is shown as the service has it', () => {
    const long = entry('route.update', { changes: [change('host', null, 'x'.repeat(80))] });
    expect(entrySentence(long)).toBe(`anna changed host of route web: none → ${'x'.repeat(59)}…`);
    expect(entrySentence(entry('gadget.turn_over'))).toBe('anna turn over gadget web');
  });
});

test.each([
  ['endpoint', 'endpoint'],
  ['tunnels[2].listener_node_id', 'listener node id of tunnel 3'],
  ['hops[0].tls.server_name', 'server name of TLS of hop 1'],
  ['labels.example.com/zone', 'label example.com/zone'],
])('the field %s is called %s', (path, words) => expect(fieldWords(path)).toBe(words));
