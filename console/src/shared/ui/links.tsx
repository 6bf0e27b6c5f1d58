/** Words and buttons that lead to another page; the router checks their addresses. */
import { Anchor, Button, type AnchorProps, type ButtonProps } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { Ref } from 'react';
import classes from './links.module.css';

type Linked<P> = P & { readonly ref?: Ref<HTMLAnchorElement>; readonly children?: React.ReactNode };

export const TextLink = createLink((props: Linked<AnchorProps>) => (
  <Anchor inherit classNames={{ root: classes.link }} {...props} />
));

export const LinkButton = createLink((props: Linked<ButtonProps>) => <Button component="a" size="xs" {...props} />);
