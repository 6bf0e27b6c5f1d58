import { connect } from 'node:net';
import { it } from 'vitest';
import { startService } from './support/running.js';
it('probe', async () => {
  const r = await startService();
  const { hostname, port, host } = new URL(r.api.url);
  for (const type of ['application/json', 'text/plain']) {
    const t0 = Date.now();
    const s = connect(Number(port), hostname);
    s.on('data', (d) => console.log(type, Date.now() - t0, String(d)));
    s.on('close', () => console.log(type, 'closed', Date.now() - t0));
    s.write(`POST /api/nodes HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${r.api.token}\r\ncontent-type: ${type}\r\ncontent-length: 999999\r\nconnection: close\r\n\r\n`);
    await new Promise((ok) => setTimeout(ok, 3000));
  }
  const t1 = Date.now();
  await r.close();
  console.log('closed in', Date.now() - t1, r.service.program().child.signalCode, r.service.program().output().slice(-1500));
}, 60000);
