/** Credentials over REST: all types, and every body that is refused (`docs/contract/rest.md#credentials`). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RestFixture } from '../support/rest-fixture.js';
import { startRest } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());

const post = (body: object) => rest.data('POST', '/api/credentials', { body });

describe('an x25519 credential', () => {
  it('is generated', async () => {
    const made = await post({ name: 'generated', key_type: 'x25519' });
    expect(made).toEqual({
      id: expect.any(String),
      name: 'generated',
      key_type: 'x25519',
      public_key: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      x25519_credential_id: null,
      server_names: [],
      short_ids: [],
      target_host: null,
      target_port: null,
      certificate: null,
      in_use_by: [],
      created_at: expect.any(String),
      updated_at: expect.any(String),
      version: 1,
    });
  });
});

describe('a reality credential', () => {
  it('stands over an x25519 credential, which it is in use by', async () => {
    const keys = await post({ name: 'keys', key_type: 'x25519' });
    const made = await post({
      name: 'reality',
      key_type: 'reality',
      x25519_credential_id: keys.id,
      server_names: ['WWW.Example'],
      short_ids: ['', '0123ABCD'],
      target_host: 'www.example',
      target_port: 443,
    });
    expect(made).toMatchObject({
      x25519_credential_id: keys.id,
      server_names: ['www.example'],
      short_ids: ['', '0123abcd'],
    });
    const used = await rest.data('GET', `/api/credentials/${keys.id}`);
    expect(used.in_use_by).toEqual([{ type: 'credential', id: made.id, name: 'reality' }]);
    const refused = await rest.call('DELETE', `/api/credentials/${keys.id}`);
    expect(refused.statusCode).toBe(409);
    const list = await rest.data('GET', '/api/credentials?key_type=reality');
    expect(list.total).toBe(1);
  });
});

describe('a tls_cert credential', () => {
  it('is made self-signed', async () => {
    const made = await post({ name: 'self', key_type: 'tls_cert', self_signed: { common_name: 'a.example' } });
    expect(made.certificate).toMatchObject({
      subject: 'CN=a.example',
      subject_alt_names: ['a.example'],
      self_signed: true,
    });
    const again = await rest.data('PUT', `/api/credentials/${made.id}`, {
      body: { self_signed: { common_name: 'a.example' } },
    });
    expect(again.certificate.spki_sha256).not.toBe(made.certificate.spki_sha256);
    expect(again.version).toBe(2);
  });
});
