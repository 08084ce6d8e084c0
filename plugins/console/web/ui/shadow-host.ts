/** An empty element in the shadow root of a host: the page's policy allows the style sheets of libraries there alone. */
export const shadowHost = (host: HTMLElement): { readonly parent: HTMLElement; readonly root: ShadowRoot } => {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' })
  const parent = document.createElement('div')
  parent.style.blockSize = '100%'
  root.replaceChildren(parent)
  return { parent, root }
}
