// A titled part of a page: a landmark by its heading.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface Props {
  title: ComponentChildren;
  aside?: ComponentChildren;
  flush?: boolean;
  children: ComponentChildren;
}

export function Card({ title, aside, flush = false, children }: Props) {
  const id = useId();
  return (
    <section class={flush ? "card flush" : "card"} aria-labelledby={id}>
      <header class="card-head">
        <h2 id={id}>{title}</h2>
        {aside === undefined ? null : <div class="card-aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}

interface PageProps {
  title: ComponentChildren;
  above?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

export function Page({ title, above, actions, children }: PageProps) {
  return (
    <>
      <header class="page-head">
        <div class="page-titles">
          {above === undefined ? null : <div class="page-above">{above}</div>}
          <h1 tabIndex={-1}>{title}</h1>
        </div>
        {actions === undefined ? null : <div class="page-actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}
