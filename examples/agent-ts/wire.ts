/** The messages of proto/svc/control/v1, and the connection: docs/agent-protocol.md, "Connection". */
import { fileURLToPath } from 'node:url';
import * as grpc from '@grpc/grpc-js';
import { loadSync, type MessageTypeDefinition, type ServiceDefinition } from '@grpc/proto-loader';
import type { Snapshot } from './relay.js';

export interface Grant {
  readonly rekeyAfterSecs: number;
  readonly heartbeatIntervalSecs: number;
  readonly metricsIntervalSecs: number;
}
export interface Frame {
  readonly sessionId: Buffer | '';
  readonly sequence: string;
  readonly ciphertext: Buffer;
}
/** Enum values are names, or the number of a value that only a later service knows. */
export interface FromService {
  readonly heartbeatResponse?: Omit<Grant, 'rekeyAfterSecs'> & { readonly commands: readonly (string | number)[] };
  readonly configUpdate?: { readonly snapshot?: Snapshot };
  readonly close?: { readonly reason: string | number; readonly retryAfterMs: number };
}
interface Opened {
  readonly sessionId: Buffer;
  readonly handshake: Buffer;
}
export interface Client {
  openSession(request: object, options: grpc.CallOptions, done: (error: Error | null, value: Opened) => void): void;
  control(): grpc.ClientDuplexStream<Frame, Frame>;
  close(): void;
}

const folder = process.env['PROTO_FOLDER'] ?? fileURLToPath(new URL('../../proto', import.meta.url));
const options = { includeDirs: [folder], longs: String, enums: String, defaults: true, oneofs: true };
const protocol = loadSync('svc/control/v1/secure_agent_service.proto', options);
function codec<In extends object, Out extends object>(name: string): MessageTypeDefinition<In, Out> {
  const definition: unknown = protocol[`svc.control.v1.${name}`];
  return definition as MessageTypeDefinition<In, Out>;
}
const Service = grpc.makeGenericClientConstructor(
  protocol['svc.control.v1.SecureAgentService'] as ServiceDefinition,
  'SecureAgentService',
);

export const offers = codec<object, object>('SessionOffer');
export const grants = codec<object, Grant>('SessionGrant');
export const fromAgent = codec<object, object>('AgentPayload');
export const fromService = codec<object, FromService>('ServicePayload');

/** One HTTP/2 connection, for both calls. @param endpoint `http://host:port` */
export function connect(endpoint: string): Client {
  const client: unknown = new Service(endpoint.replace(/^http:\/\//, ''), grpc.credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_retries': 0,
    'grpc.enable_http_proxy': 0,
    'grpc.max_receive_message_length': 66 * 1024,
    'grpc-node.flow_control_window': 1024 * 1024,
  });
  return client as Client;
}

/** The service's clock, from a refusal for skew; undefined otherwise. */
export function serverTimeOf(error: unknown): number | undefined {
  const [time] = (error as Partial<grpc.ServiceError>).metadata?.get('server-time-ms') ?? [];
  return time === undefined ? undefined : Number(time);
}
