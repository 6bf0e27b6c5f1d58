/**
 * The floor of a durable command over REST: fastify, a body checked by zod, and one LMDB transaction per turn of the event
 * loop, flushed before the answers. No domain, no read models, no authentication.
 */
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from '@fastify/type-provider-zod';
import Fastify from 'fastify';
import { z } from 'zod';
import { answerParent } from '../child.js';
import { openBareLog } from './bare-log.js';

const upstream = z.strictObject({
  name: z.string().min(1).max(128),
  endpoint: z.string().min(3).max(1024),
  server_names: z.array(z.string().max(253)).max(64).optional(),
  health_check_interval_ms: z.int().min(100).max(3_600_000).optional(),
});

const [folder = ''] = process.argv.slice(2);
const log = openBareLog(folder);
const app = Fastify({ logger: false }).withTypeProvider<ZodTypeProvider>();
app.setValidatorCompiler(validatorCompiler);
app.setSerializerCompiler(serializerCompiler);
app.route({
  method: 'POST',
  url: '/commands',
  schema: {
    body: upstream,
    response: { 201: z.object({ success: z.boolean(), data: z.object({ revision: z.int(), ...upstream.shape }) }) },
  },
  handler: async (request, reply) => {
    const revision = await log.append(JSON.stringify(request.body));
    return reply.code(201).send({ success: true, data: { revision, ...request.body } });
  },
});
const url = await app.listen({ host: '127.0.0.1', port: 0 });
answerParent({ url: () => url });
