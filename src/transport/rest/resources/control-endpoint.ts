/**
 * The address for agents: the host of this request with the port and the REALITY parameters of the listener for agents. A guess
 * if agents use another host, such as that of a balancer. Implements decision 350.
 */
import { z } from 'zod';
import { ServiceError } from '../../../kernel/errors.js';
import { answers, ok } from '../answers/envelope.js';
import { originOf } from '../checks/session-token.js';
import type { RestApp, RestOptions } from '../deps.js';
import { component, documented } from '../schemas/documented.js';

const schema = component('ControlEndpoint', 'Where agents reach this service', {
  endpoint: documented(
    z.string(),
    "The agent's `SVC_CONTROL_ENDPOINT`",
    'reality://control.example:8443?pbk=DzAP-RbbpUdtjgovNPLgYr92godCwsV6LKL86AY2qiI&sid=10580bfb0c977654&sni=www.example.com',
  ),
});

export function controlEndpointRoutes(app: RestApp, { controlEndpoint }: Pick<RestOptions, 'controlEndpoint'>): void {
  app.get('/api/nodes/control-endpoint', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'getControlEndpoint',
      summary: 'Where agents reach this service',
      description:
        'The host of this request with the port and, with REALITY, the parameters of the listener for agents. The service cannot know other addresses, such as that of a balancer.',
      response: answers(schema),
    },
    handler: (request) => {
      const own = originOf(`http://${request.headers.host ?? ''}`);
      if (own === undefined)
        throw new ServiceError('invalid_request', 'host: expected the name or address by which the service is reached');
      return ok({ endpoint: controlEndpoint(own.hostname.replaceAll(/[[\]]/g, '')) });
    },
  });
}
