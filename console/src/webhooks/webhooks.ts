/** What the console asks about webhooks and does with them, as an admin. A secret is in one answer and in no cache. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, doneOf } from '../shared/api/client.js';
import type { Done, Schemas } from '../shared/api/client.js';
import type { Save } from '../shared/forms/resource-form.js';
import type { ListSearch } from '../shared/search.js';
import { pageSize } from '../shared/ui/data-table.js';

export type Webhook = Schemas['Webhook'];
export type Delivery = Schemas['WebhookDelivery'];

export const webhooksQuery = ({ q, sort, page }: ListSearch) =>
  queryOptions({
    queryKey: ['webhook', 'list', q, sort, page],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/api/webhooks', { params: { query: { q, sort, page, page_size: pageSize } }, signal })),
    placeholderData: keepPreviousData,
  });

export const webhookQuery = (id: string) =>
  queryOptions({
    queryKey: ['webhook', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/webhooks/{id}', { params: { path: { id } }, signal })),
  });

export const deliveriesQuery = (id: string) =>
  queryOptions({
    queryKey: ['webhook', 'deliveries', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/webhooks/{id}/deliveries', { params: { path: { id } }, signal })),
  });

export const createWebhook = ({
  values,
  headers: header,
}: Save<Schemas['NewWebhook']>): Promise<Done<Schemas['CreatedWebhook']>> =>
  doneOf(api.POST('/api/webhooks', { params: { header }, body: values as Schemas['NewWebhook'] }));

export const updateWebhook = (
  id: string,
  { values: body, headers: header }: Save<Schemas['WebhookChanges']>,
): Promise<Done<Schemas['UpdatedWebhook']>> =>
  doneOf(api.PUT('/api/webhooks/{id}', { params: { path: { id }, header }, body }));

export const deleteWebhook = (id: string): Promise<Done<unknown>> =>
  doneOf(api.DELETE('/api/webhooks/{id}', { params: { path: { id } } }));

/** Tries now what failed, or what is behind it. @throws Refusal */
export const resumeWebhook = (id: string, body: Schemas['ResumeWebhook']): Promise<Done<Webhook>> =>
  doneOf(api.POST('/api/webhooks/{id}/resume', { params: { path: { id } }, body }));

/** Sends a ping now. @throws Refusal */
export const pingWebhook = (id: string): Promise<Done<Delivery>> =>
  doneOf(api.POST('/api/webhooks/{id}/ping', { params: { path: { id } } }));
