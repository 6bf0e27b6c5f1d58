/**
 * Webhooks for people: one message for what happens together, as each chat takes it, and mail through a real SMTP server.
 * `docs/contract/notices.md#webhooks-for-people`.
 */
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';
import { startReceiver, status, type Receiver } from '../support/webhook-receiver.js';

interface Letter {
  readonly to: readonly string[];
  readonly text: string;
}

/** A mail server that refuses `refused@…` and takes everything else. */
function startMailServer(letters: Letter[]): Promise<SMTPServer> {
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS', 'AUTH'],
    onRcptTo({ address }, _session, callback) {
      callback(address.startsWith('refused') ? Object.assign(new Error('no such user'), { responseCode: 550 }) : null);
    },
    onData(stream, { envelope }, callback) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        letters.push({ to: envelope.rcptTo.map(({ address }) => address), text: Buffer.concat(chunks).toString() });
        callback();
      });
    },
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

let rest: RestFixture;
let receiver: Receiver;
let mail: SMTPServer;
const letters: Letter[] = [];
beforeAll(async () => {
  mail = await startMailServer(letters);
  const { port } = mail.server.address() as AddressInfo;
  rest = await startRest({
    webhookAllow: ['127.0.0.0/8'],
    publicUrl: 'https://gateway.example',
    mail: { url: `smtp://127.0.0.1:${port}`, from: 'gateway@example.com' },
  });
});
afterAll(async () => {
  await rest.close();
  await new Promise<void>((resolve) => mail.close(() => resolve()));
});
beforeEach(async () => {
  receiver = await startReceiver();
  letters.length = 0;
});
afterEach(async () => {
  for (const { id } of (await rest.data('GET', '/api/webhooks')).items)
    await rest.data('DELETE', `/api/webhooks/${id}`);
  await receiver.close();
});

let made = 0;
const webhook = (body: object): Promise<JsonData> =>
  rest.data('POST', '/api/webhooks', { body: { name: `chat ${(made += 1)}`, url: receiver.url, ...body } });
const node = (): Promise<JsonData> => rest.data('POST', '/api/nodes', { body: { name: `node ${(made += 1)}` } });
async function refusal(method: string, path: string, body: object): Promise<string> {
  const answer = await rest.call(method, path, { body });
  expect(answer.statusCode).toBe(400);
  return answer.json().error;
}

describe('a chat', () => {
  test('gets what happened within its seconds as one message, with where to look', async () => {
    const { id, secret, group_secs, types } = await webhook({
      format: 'slack',
      types: ['rollout', 'command'],
      group_secs: 3,
    });
    expect({ secret, group_secs, types }).toEqual({ secret: null, group_secs: 3, types: ['rollout', 'command'] });
    const [first, second] = [await node(), await node()];
    await eventually(() => receiver.received.length).toBe(1);
    const [message] = receiver.received;
    expect(message?.headers['content-type']).toBe('application/json');
    expect(message?.headers['webhook-signature']).toBeUndefined();
    expect(JSON.parse(message?.body ?? '').text).toBe(
      [
        `\`admin\` created node \`${first.name}\`.`,
        `\`admin\` created node \`${second.name}\`.`,
        '<https://gateway.example/console/audit|Open in the console>',
      ].join('\n'),
    );
    // Behind the window there is nothing left.
    await eventually(async () => (await rest.data('GET', `/api/webhooks/${id}`)).lag.caught_up).toBe(true);
    expect(receiver.received).toHaveLength(1);
  });

  test.each([
    [429, 'failing'],
    [410, 'stopped'],
  ])('that answers %i gets the message once more when resumed, and none before it', async (code, state) => {
    let refused = 0;
    receiver.answer = (response, { body }) => {
      const fails = body.includes('connected') && (refused += 1) === 1;
      status(fails ? code : 204)(response);
    };
    const chat = await webhook({
      format: 'discord',
      types: ['command', 'session'],
      group_secs: 1,
      console_links: false,
    });
    const { id, name } = await node();
    await rest.connect(id);
    await eventually(async () => (await rest.data('GET', `/api/webhooks/${chat.id}`)).state).toBe(state);
    await rest.data('POST', `/api/webhooks/${chat.id}/resume`);
    await eventually(() => receiver.received.length).toBeGreaterThan(2);
    const contents = receiver.received.map(({ body }) => JSON.parse(body).content);
    expect(contents[0]).toBe(`\`admin\` created node \`${name}\`.`);
    expect(contents[1]).toContain(`The agent of node \`${name}\` has connected`);
    expect(contents[2]).toBe(contents[1]);
  });

  test('goes on with skip behind all that the failed message held, and with what it did not hold', async () => {
    receiver.answer = (response, { body }) => status(body.includes('created') ? 400 : 204)(response);
    const chat = await webhook({ format: 'discord', types: ['command', 'session'], group_secs: 3 });
    const { id } = await node();
    const { name } = await node();
    await rest.connect(id);
    await eventually(async () => (await rest.data('GET', `/api/webhooks/${chat.id}`)).state).toBe('failing');
    await rest.data('POST', `/api/webhooks/${chat.id}/resume`, { body: { skip: true } });
    await eventually(() => receiver.received.length).toBeGreaterThan(1);
    const [first, second] = receiver.received.map(({ body }) => body);
    expect(first).toContain(name);
    expect(second).toContain('has connected');
    expect(second).not.toContain(name);
  });

  test('goes on with skip behind a message that failed after others of its window', async () => {
    receiver.answer = (response, { body }) => status(body.includes('connected') ? 410 : 204)(response);
    const chat = await webhook({ format: 'discord', types: ['command', 'session'], group_secs: 1 });
    await rest.connect((await node()).id);
    await eventually(async () => (await rest.data('GET', `/api/webhooks/${chat.id}`)).state).toBe('stopped');
    await rest.data('POST', `/api/webhooks/${chat.id}/resume`, { body: { skip: true } });
    const { name } = await node();
    await eventually(() => receiver.received.some(({ body }) => body.includes(name))).toBe(true);
    const contents = receiver.received.map(({ body }) => JSON.parse(body).content);
    expect(contents.filter((content) => content.includes('connected'))).toHaveLength(1);
  });

  test.each(['slack', 'mattermost', 'discord', 'teams', 'ntfy'])('%s is pinged in its own words', async (format) => {
    const { id, name } = await webhook({ format });
    const { status: code, error } = await rest.data('POST', `/api/webhooks/${id}/ping`);
    expect({ code, error }).toEqual({ code: 204, error: null });
    expect(receiver.received[0]?.body).toContain(name);
    expect(receiver.received[0]?.body).toContain('test message');
  });
});

describe('mail', () => {
  test('goes to whoever is accepted, as plain text', async () => {
    const url = 'mailto:refused@example.com,anna@example.com';
    const { id } = await webhook({ url, format: 'email', types: ['command'], group_secs: 0 });
    const { name } = await node();
    await eventually(() => letters.length).toBeGreaterThan(0);
    expect(letters[0]?.to).toEqual(['anna@example.com']);
    expect(letters[0]?.text).toContain('From: gateway@example.com');
    expect(letters[0]?.text).toContain('Content-Type: text/plain');
    const text = letters[0]?.text.replaceAll('=\r\n', '');
    expect(text).toContain(`"admin" created node "${name}".`);
    await eventually(async () => (await rest.data('GET', `/api/webhooks/${id}`)).last_delivery?.status).toBe(250);
    const [delivery] = (await rest.data('GET', `/api/webhooks/${id}/deliveries`)).items;
    expect(text).toContain(`<${delivery.message_id}.${id}@example.com>`);
    const { items } = await rest.data('GET', '/api/audit?action=webhook.create');
    expect(JSON.stringify(items)).not.toContain('anna@');
    expect(JSON.stringify(items)).toContain('mailto: 2 addresses');
    expect(rest.logged.join('\n')).not.toContain('anna@');
  });

  test('that nobody is accepted of fails with the code of the server', async () => {
    const { id } = await webhook({ url: 'mailto:refused@example.com', format: 'email' });
    expect(await rest.data('POST', `/api/webhooks/${id}/ping`)).toMatchObject({
      status: 550,
      error: 'the mail server answered 550',
    });
  });
});

describe('settings that do not go together', () => {
  test.each([
    [{ format: 'telegram' }, 'chat_id: expected the id of a chat with the format telegram'],
    [{ format: 'slack', chat_id: '1' }, 'chat_id: expected null with the format slack'],
    [{ format: 'email' }, 'url: expected mailto: with 1 to 16 addresses with the format email'],
    [{ url: 'mailto:a@example.com' }, 'url: expected https or http with the format standard'],
    [{ group_secs: 15 }, 'group_secs: expected 0 with the format standard'],
    [{ format: 'slack', group_secs: 3601 }, 'group_secs'],
    [{ format: 'irc' }, 'format'],
    [{ format: 'email', url: 'mailto:a%40example.com' }, 'url: expected mailto: and 1 to 16 plain addresses'],
    [{ format: 'email', url: 'mailto:a@example.com?subject=x' }, 'url: expected mailto: and 1 to 16 plain addresses'],
    [{ format: 'slack', filters: { statuses: [] } }, 'filters.statuses'],
    [{ format: 'slack', filters: { statuses: ['pending'] } }, 'filters.statuses'],
  ])('%j', async (body, error) => {
    expect(await refusal('POST', '/api/webhooks', { name: 'x', url: receiver.url, ...body })).toContain(error);
  });

  test('another format keeps the secret, and sets what it does not take to its default', async () => {
    const { id, secret } = await webhook({});
    expect(secret).toMatch(/^whsec_/);
    const put = (body: object): Promise<JsonData> => rest.data('PUT', `/api/webhooks/${id}`, { body });
    expect(await put({ format: 'telegram', chat_id: '-100', group_secs: 30 })).toMatchObject({ group_secs: 30 });
    expect(await refusal('PUT', `/api/webhooks/${id}`, { rotate_secret: true })).toContain('rotate_secret');
    expect(await put({ format: 'slack' })).toMatchObject({
      chat_id: null,
      group_secs: 30,
      types: ['command', 'apply'],
    });
    const back = await put({ format: 'standard' });
    expect(back).toMatchObject({ group_secs: 0, chat_id: null });
    expect(back.secret).toBeUndefined();
    const { id: other } = await webhook({ format: 'slack' });
    expect((await rest.data('PUT', `/api/webhooks/${other}`, { body: { format: 'standard' } })).secret).toMatch(
      /^whsec_/,
    );
  });
});
