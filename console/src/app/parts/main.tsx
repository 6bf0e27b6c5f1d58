/**
 * Shows the parts that pages are made of, in all their states, without a service: `/console/parts`, with `npm run
 * dev:console`. Not in the bundle.
 */
import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { cssVariablesResolver, theme } from '../theme.js';
import { queryClient } from '../../shared/live/queries.js';
import { meQuery } from '../../shared/session.js';
import { Parts } from './parts.js';

const root = document.querySelector('#root');
if (root === null) throw new Error('the page has no root');
// A person who may see everything.
queryClient.setQueryData(meQuery.queryKey, {
  id: 'parts',
  username: 'parts',
  role: 'admin',
  display_name: null,
  email: null,
  version: 1,
  created_at: '2030-01-31T12:00:00.000Z',
  updated_at: '2030-01-31T12:00:00.000Z',
});
const router = createRouter({
  routeTree: createRootRoute({ component: Parts }),
  history: createMemoryHistory(),
});
createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} cssVariablesResolver={cssVariablesResolver} defaultColorScheme="auto">
      <QueryClientProvider client={queryClient}>
        <Notifications position="bottom-right" />
        <RouterProvider router={router as never} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
