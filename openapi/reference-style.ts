/** The style sheet of the reference page, for light and dark and for narrow screens. */
export const REFERENCE_STYLE = `:root {
  color-scheme: light dark;
  --ink: #1c2024;
  --quiet: #5c6670;
  --line: #dfe3e8;
  --paper: #fff;
  --side: #f6f7f9;
  --code: #eef1f4;
  --link: #0b5cad;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e9ec;
    --quiet: #98a2ad;
    --line: #2c333b;
    --paper: #14171a;
    --side: #1a1e22;
    --code: #242a30;
    --link: #79b8ff;
  }
}
* {
  box-sizing: border-box;
}
html {
  scroll-padding-top: 1rem;
}
body {
  margin: 0;
  display: grid;
  grid-template-columns: 20rem minmax(0, 1fr);
  background: var(--paper);
  color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif;
}
nav {
  position: sticky;
  top: 0;
  height: 100vh;
  overflow-y: auto;
  padding: 1.25rem;
  background: var(--side);
  border-right: 1px solid var(--line);
  font-size: 0.875rem;
}
nav .title {
  margin: 0 0 0.75rem;
  font-weight: 650;
  font-size: 1rem;
}
nav h2 {
  margin: 1.25rem 0 0.25rem;
  font-size: 0.75rem;
  letter-spacing: 0.04em;
  text-transform: uppercase;
  color: var(--quiet);
}
nav ul {
  list-style: none;
  margin: 0;
  padding: 0;
}
nav li a {
  display: block;
  padding: 0.2rem 0;
  color: var(--ink);
  overflow-wrap: anywhere;
}
input {
  width: 100%;
  padding: 0.5rem 0.65rem;
  font: inherit;
  font-size: 1rem;
  color: inherit;
  background: var(--paper);
  border: 1px solid var(--line);
  border-radius: 0.4rem;
}
main {
  padding: 2rem clamp(1rem, 4vw, 3.5rem) 6rem;
  max-width: 62rem;
}
h1 {
  margin: 0;
  font-size: 2rem;
  line-height: 1.2;
}
main h2 {
  margin: 3.5rem 0 0.25rem;
  font-size: 1.5rem;
}
article {
  padding: 1.25rem 0 1.5rem;
  border-top: 1px solid var(--line);
}
h3 {
  margin: 0;
  font-size: 1.05rem;
  line-height: 1.5;
  overflow-wrap: anywhere;
}
h3 .quiet {
  font-size: 0.8rem;
  font-weight: 400;
  margin-left: 0.5rem;
}
h4 {
  margin: 1.1rem 0 0.35rem;
  font-size: 0.875rem;
}
p {
  margin: 0.5rem 0;
}
.summary {
  font-size: 1.05rem;
}
.who {
  font-size: 0.9rem;
  border-left: 3px solid var(--line);
  padding-left: 0.75rem;
}
a {
  color: var(--link);
  text-decoration: none;
}
a:hover,
a:focus-visible {
  text-decoration: underline;
}
.quiet,
nav .quiet {
  color: var(--quiet);
  font-size: 0.875rem;
}
code,
.type {
  font-family: ui-monospace, 'SFMono-Regular', Menlo, Consolas, monospace;
  font-size: 0.86em;
}
p code,
dd code {
  background: var(--code);
  border-radius: 0.25rem;
  padding: 0.1em 0.3em;
}
.verb {
  display: inline-block;
  min-width: 3.6em;
  font: 700 0.72rem/1 ui-monospace, Menlo, Consolas, monospace;
  color: var(--quiet);
}
.get {
  color: light-dark(#0a6b3d, #6fd49b);
}
.post {
  color: light-dark(#0b5cad, #79b8ff);
}
.put,
.patch {
  color: light-dark(#8a5300, #f0b45b);
}
.delete {
  color: light-dark(#b3261e, #ff8a80);
}
.fields {
  margin: 0.25rem 0;
  border-left: 1px solid var(--line);
  padding-left: 0.9rem;
}
dt {
  margin-top: 0.45rem;
  overflow-wrap: anywhere;
}
dt > code {
  font-weight: 650;
}
.type {
  color: var(--quiet);
}
.literal {
  color: light-dark(#8a5300, #e3b341);
}
dd {
  margin: 0;
  font-size: 0.92rem;
}
dd .fields {
  margin-left: 0.25rem;
}
details {
  margin: 0.2rem 0;
}
summary {
  cursor: pointer;
  font-family: ui-monospace, Menlo, Consolas, monospace;
  font-size: 0.86em;
}
pre {
  overflow-x: auto;
  padding: 0.6rem 0.8rem;
  background: var(--code);
  border-radius: 0.3rem;
  font-size: 0.82rem;
  line-height: 1.45;
}
:target > h3 {
  background: var(--code);
  border-radius: 0.3rem;
  padding: 0.2rem 0.4rem;
  margin: -0.2rem -0.4rem;
}
[hidden] {
  display: none !important;
}
@media (max-width: 52rem) {
  body {
    display: block;
  }
  nav {
    position: static;
    height: auto;
    max-height: 45vh;
    border-right: 0;
    border-bottom: 1px solid var(--line);
  }
  nav li a {
    padding: 0.4rem 0;
  }
  h1 {
    font-size: 1.6rem;
  }
}
`
