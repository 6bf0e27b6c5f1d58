/** The log's second line of defence: what must not reach it is masked or left out. `docs/reference/log.md`. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { LogFields } from '../../src/kernel/logger.js';
import { createServiceLog } from '../../src/instance/service-log.js';

function logged(fields: object, message = 'm'): { readonly [name: string]: unknown } {
  const lines: string[] = [];
  createServiceLog('info', { write: (line) => void lines.push(line) }).info(fields as LogFields, message);
  return JSON.parse(lines.join('')) as { readonly [name: string]: unknown };
}

test('a line has its level, its time, its fields and its sentence', () => {
  expect(logged({ status: 200, path: '/api/nodes', user_id: null, left_out: { a: 1 }, errors: ['x', 2] })).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    status: 200,
    path: '/api/nodes',
    user_id: null,
    left_out: { a: 1 },
    errors: ['x', 2],
    msg: 'm',
  });
});

test('fields that are named like a secret are masked', () => {
  const names = ['password', 'new_password', 'token', 'authorization', 'control_psk', 'private_key_pem', 'headers'];
  for (const name of names) expect(logged({ [name]: 'hunter2' })[name]).toBe('***');
});

test('what looks like a secret in a text is masked, and the rest of the text stays', () => {
  const given = ['svcpsk1_', 'svcjoin1_', 'svcat_'].map((mark) => `${mark}${randomBytes(64).toString('base64url')}`);
  const webhook = `whsec_${Buffer.alloc(32, 0xff).toString('base64')}`;
  const jwt = `eyJhbGciOiJFZERTQSJ9.${randomBytes(40).toString('base64url')}.${randomBytes(64).toString('base64url')}`;
  const pem = '-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----';
  for (const secret of [...given, webhook, jwt, pem, `Bearer ${jwt}`]) {
    expect(logged({ error: `before ${secret} after` })['error']).toBe('before *** after');
  }
  expect(logged({ error: 'no server at mongodb://control:hunter2@mongo1/control' })['error']).toBe(
    'no server at mongodb://***mongo1/control',
  );
  expect(
    logged({ error: 'an ordinary sentence: expected svcpsk1 or bearer tokens at http://host/path' })['error'],
  ).toBe('an ordinary sentence: expected svcpsk1 or bearer tokens at http://host/path');
});

test('objects, bytes and errors are not written, however they got there', () => {
  const line = JSON.stringify(
    logged({
      request: { headers: { authorization: 'hunter2' }, raw: 'hunter2' },
      bytes: Buffer.from('hunter2'),
      thrown: new Error('hunter2'),
      list: [{ password: 'hunter2' }],
      long: 'x'.repeat(100_000),
    }),
  );
  expect(line).not.toContain('hunter2');
  expect(line).not.toContain(String(Buffer.from('hunter2').at(0)));
  expect(line.length).toBeLessThan(10_000);
});
