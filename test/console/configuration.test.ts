/** A node's configuration as people read it: in sentences, raw behind a tab, and the difference of two generations (`docs/contract/console.md#pages`). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { goTo } from '../../bench/console/pages.js';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { openSite, type Site } from './support/site.js';
import { expectAbsent, expectSearch, expectTexts } from './support/waiting.js';

const browser = await openBrowser();

describe.skipIf(browser === undefined)('the configuration of a node', () => {
  let site: Site;
  let edge: string;
  /** Before and after the chain moved to another port. */
  const generations: number[] = [];
  beforeAll(async () => {
    site = await openSite(browser!);
    const make = async (path: string, body: object): Promise<string> =>
      (await site.admin.call<{ readonly id: string }>('POST', path, body)).id;
    edge = await make('/api/nodes', { name: 'edge-1', address: '192.0.2.1' });
    const exit = await make('/api/nodes', { name: 'exit-1', address: '192.0.2.2' });
    const keys = await make('/api/credentials', { name: 'keys', key_type: 'x25519' });
    const cover = await make('/api/credentials', {
      name: 'cover',
      key_type: 'reality',
      x25519_credential_id: keys,
      server_names: ['cover.example'],
      short_ids: ['5eed'],
      target_host: 'cover.example',
      target_port: 443,
    });
    const certificate = await make('/api/credentials', {
      name: 'site',
      key_type: 'tls_cert',
      self_signed: { common_name: 'site.example', subject_alt_names: ['site.example'] },
    });
    const upstream = await make('/api/l4-upstreams', { name: 'app', endpoint: '192.0.2.9:80' });
    const hops = (port: number) => [
      { node_id: edge, listen_port: port, outer: 'tcp', security: 'tls', credential_id: certificate },
      { node_id: exit, listen_port: 8_443, outer: 'tcp', security: 'reality', credential_id: cover },
    ];
    const chain = { name: 'web', payload: 'tcp', target: { upstream_id: upstream } };
    const id = await make('/api/l4-chains', { ...chain, hops: hops(443) });
    for (const port of [443, 444]) {
      await site.admin.call('PUT', `/api/l4-chains/${id}`, { hops: hops(port) });
      await site.admin.call('POST', `/api/l4-chains/${id}/deploy`, {});
      const { generation } = await site.admin.call<{ generation: number }>('GET', `/api/nodes/${edge}`);
      generations.push(generation);
    }
  });
  afterAll(() => site.close());

  const listens = (port: number) =>
    new RegExp(
      `^Listens on tcp 0\\.0\\.0\\.0:${port} for chain web, takes TLS for site\\.example with certificate site \\(ends .+\\), and passes to exit-1 \\(192\\.0\\.2\\.2:8443\\) over REALITY as cover\\.example\\.$`,
    );

  test('is told in sentences that name what they are about; raw is behind a tab, without a secret', async () => {
    const page = await site.openAs('viewer', `/nodes/${edge}/config`);
    const sentences = page.getByRole('region', { name: 'Listeners' }).getByRole('listitem');
    await expectTexts(sentences).toEqual([expect.stringMatching(listens(444))]);
    const certificates = page.getByRole('region', { name: 'Certificates' }).getByRole('listitem');
    await expectTexts(certificates).toEqual([
      expect.stringMatching(/^Holds certificate site \(ends .+\) for site\.example\.$/),
    ]);
    await expectAccessible(page);
    await page.getByRole('tab', { name: 'Raw' }).click();
    await expectSearch(page).toBe('?as=raw');
    await page.getByText('"private_key_pem": "***"').waitFor();
    await expectAbsent(page, page.getByText('BEGIN PRIVATE KEY'));
    await goTo(page, `/nodes/${edge}/config`);
    await sentences.getByRole('link', { name: 'exit-1' }).click();
    await page.getByRole('heading', { name: 'exit-1', level: 1 }).waitFor();
  });

  test('differs between two generations by sentences: what was added, is gone, and has changed', async () => {
    const [first, second] = generations;
    const page = await site.openAs('viewer', `/nodes/${edge}/config?from=${first}&generation=${second}`);
    const changes = page.getByRole('region', { name: /^From generation/ }).getByRole('listitem');
    await changes.getByText(/^Listens on:/).waitFor();
    await expectTexts(changes).toEqual([
      expect.stringMatching(/^Changed.*tcp 0\.0\.0\.0:444.*Listens on: tcp 0\.0\.0\.0:443 → tcp 0\.0\.0\.0:444$/s),
    ]);
    // Both at once, as fast as one types.
    await page.getByLabel('Generation', { exact: true }).fill(String(first));
    await page.getByLabel('Compare with').fill(String(second));
    await expectSearch(page).toBe(`?generation=${first}&from=${second}`);
    await page.getByLabel('Compare with').fill('');
    await page.getByRole('region', { name: 'Listeners' }).waitFor();
    await goTo(page, `/nodes/${edge}/config?from=${second}&generation=${first}&as=raw`);
    await page.getByText('"listen_port": 444').waitFor();
  });
});
