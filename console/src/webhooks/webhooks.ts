/** Queries and commands of webhooks, as an admin. A secret is in one answer and in no cache. */
import { api, doneOf, type Done, type Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';
import { read } from '../shared/api/read.js';

export type Webhook = Schemas['Webhook'];
export type Delivery = Schemas['WebhookDelivery'];

export const webhooks = crud('webhook');

export const deliveriesQuery = (id: string) => read('webhook', '/api/webhooks/{id}/deliveries', { path: { id } });

/** Resumes now, at the failed item, after it, or elsewhere. @throws Refusal */
export const resumeWebhook = (id: string, body: Schemas['ResumeWebhook']): Promise<Done<Webhook>> =>
  doneOf(api.POST('/api/webhooks/{id}/resume', { params: { path: { id } }, body }));

/** Sends a ping now. @throws Refusal */
export const pingWebhook = (id: string): Promise<Done<Delivery>> =>
  doneOf(api.POST('/api/webhooks/{id}/ping', { params: { path: { id } } }));
