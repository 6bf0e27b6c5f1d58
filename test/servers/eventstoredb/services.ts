/**
 * The services as the client package defines them. Uses its compiled definitions, so paths and kinds of calls are
 * correct; only the messages are plain objects instead of generated classes.
 */
import { createRequire } from 'node:module';
import type { ServiceDefinition } from '@grpc/grpc-js';
import * as messages from './messages.js';
import { decode, encode, type Plain, type Schema } from './wire.js';

const packaged = createRequire(import.meta.url);
const { StreamsService } = packaged('@eventstore/db-client/generated/streams_grpc_pb.js') as {
  StreamsService: ServiceDefinition;
};
const { ServerFeaturesService } = packaged('@eventstore/db-client/generated/serverfeatures_grpc_pb.js') as {
  ServerFeaturesService: ServiceDefinition;
};
const { GossipService } = packaged('@eventstore/db-client/generated/gossip_grpc_pb.js') as {
  GossipService: ServiceDefinition;
};

/** The package's definition of a method, with plain objects instead of generated classes. */
function plainMethods(service: ServiceDefinition, schemas: Readonly<Record<string, readonly [Schema, Schema]>>) {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, [request, response]]) => {
      const method = service[name];
      if (method === undefined) throw new Error(`the client package knows no method ${name}`);
      return [
        name,
        {
          ...method,
          requestDeserialize: (bytes: Buffer) => decode(request, bytes),
          responseSerialize: (plain: Plain) => encode(response, plain),
        },
      ];
    }),
  ) as unknown as ServiceDefinition;
}

export const streamsService = plainMethods(StreamsService, {
  read: [messages.ReadReq, messages.ReadResp],
  append: [messages.AppendReq, messages.AppendResp],
  delete: [messages.DeleteReq, messages.DeleteResp],
  tombstone: [messages.DeleteReq, messages.DeleteResp],
  batchAppend: [messages.BatchAppendReq, messages.BatchAppendResp],
});
export const featuresService = plainMethods(ServerFeaturesService, {
  getSupportedMethods: [messages.Empty, messages.SupportedMethods],
});
export const gossipService = plainMethods(GossipService, { read: [messages.Empty, messages.ClusterInfo] });
