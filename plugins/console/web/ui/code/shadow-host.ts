/** An empty element in the shadow root of a host: there alone the page's policy allows style sheets of libraries. */
export const shadowHost = (host: HTMLElement): { readonly parent: HTMLElement; readonly root: ShadowRoot } => {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' })
  const parent = document.createElement('div')
  parent.style.blockSize = '100%'
  root.replaceChildren(parent)
  return { parent, root }
}
