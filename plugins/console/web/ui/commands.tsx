import { useLayoutEffect, useRef } from 'preact/hooks'
import { offerCommands, type KeyCommand } from '../data/keys.js'

/** Offers commands while the component is shown. */
export const useCommands = (commands: readonly KeyCommand[]): void => {
  const current = useRef(commands)
  current.current = commands
  // Before the page is seen: a key that follows at once finds them.
  useLayoutEffect(() => offerCommands(() => current.current), [])
}

const NAMES: { readonly [key: string]: string } = {
  mod: /Mac|iP(?:hone|ad)/.test(navigator.platform) ? '⌘' : 'Ctrl',
  alt: 'Alt',
  shift: 'Shift',
  arrowup: '↑',
  arrowdown: '↓',
  escape: 'Esc',
  enter: 'Enter',
}

/** Keys as they are printed on a keyboard. */
export const Keys = ({ keys }: { keys: string }) => (
  <span class="keys">
    {keys.split(' ').map((stroke, at) => (
      <span key={at}>
        {at > 0 && <span class="quiet small"> then </span>}
        {stroke.split(/\+(?=.)/).map(key => (
          <kbd key={key}>{NAMES[key] ?? key}</kbd>
        ))}
      </span>
    ))}
  </span>
)
