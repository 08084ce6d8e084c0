import { useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import { commandsNow, letterKeys } from '../../data/keys.js'
import { fleet } from '../../data/live.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { Keys } from '../commands.js'
import { Dialog } from '../dialog.js'
import { visibleName } from '../format.js'
import { cardTitle } from '../status.js'

const MOST = 40

interface Choice {
  readonly id: string
  readonly label: string
  readonly kind: string
  readonly keys?: string
  readonly run: () => void
}

/** Whether a text contains every typed word. */
const fits = (text: string, words: readonly string[]): boolean => words.every(word => text.includes(word))

const choicesFor = (typed: string): Choice[] => {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean)
  const commands = commandsNow()
    .filter(({ keysOnly }) => !keysOnly)
    .map(({ id, label, group, keys, run }): Choice => ({ id, label, kind: group, run, ...(keys && { keys }) }))
  const conversations = [...fleet.value.cards.values()]
    .sort((a, b) => b.updatedAt - a.updatedAt)
    .map((card): Choice => ({
      ...{ id: `c ${card.id}`, label: visibleName(cardTitle(card)), kind: 'Conversation' },
      run: () => goTo('c', card.id),
    }))
  return [...commands, ...conversations]
    .filter(({ label, kind, id }) => fits(`${label} ${kind} ${id}`.toLowerCase(), words))
    .slice(0, MOST)
}

/** Finds a page, an action or a conversation by its words. */
export const Palette = ({ close }: { close: () => void }) => {
  const typed = useSignal('')
  const at = useSignal(0)
  const list = useId()
  const box = useRef<HTMLUListElement>(null)
  const choices = choicesFor(typed.value)
  const chosen = choices[Math.min(at.value, choices.length - 1)]
  const start = (choice: Choice | undefined) => {
    if (!choice) return
    close()
    // After the dialog returned the focus, because the command may move it.
    setTimeout(choice.run)
  }
  const move = (to: number) => {
    at.value = (to + choices.length) % Math.max(1, choices.length)
  }
  useEffect(() => {
    box.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [at.value])
  return (
    <Dialog title="Go to or do" close={close}>
      <input
        class="input"
        role="combobox"
        aria-expanded="true"
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={chosen && `${list}-${choices.indexOf(chosen)}`}
        aria-label="Page, action or conversation"
        placeholder="Page, action or conversation"
        autocomplete="off"
        spellcheck={false}
        value={typed.value}
        onInput={event => {
          typed.value = event.currentTarget.value
          at.value = 0
        }}
        onKeyDown={event => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
          if (step) {
            event.preventDefault()
            move(at.value + step)
          }
          if (event.key === 'Enter' && !event.isComposing) {
            event.preventDefault()
            start(chosen)
          }
        }}
      />
      <ul ref={box} class="palette" role="listbox" id={list} aria-label="What fits">
        {choices.map((choice, index) => (
          <li
            key={choice.id}
            id={`${list}-${index}`}
            role="option"
            class="palette-row"
            aria-selected={choice === chosen}
            onClick={() => start(choice)}
          >
            <span class="grow one-line" dir="auto">
              {choice.label}
            </span>
            {choice.keys ? <Keys keys={choice.keys} /> : <span class="quiet small">{choice.kind}</span>}
          </li>
        ))}
      </ul>
      <p class="quiet small" role="status">
        {choices.length === 0 ? 'Nothing fits.' : choices.length === MOST ? `The first ${MOST} are shown.` : ''}
      </p>
    </Dialog>
  )
}

/** Every key that does something here. */
export const KeyHelp = ({ close }: { close: () => void }) => {
  const groups = Map.groupBy(
    commandsNow().filter(({ keys }) => keys),
    ({ group }) => group,
  )
  return (
    <Dialog title="Keys" close={close}>
      <div class="card-actions">
        <button class="button" type="button" onClick={close}>
          Close
        </button>
        <a class="button" href={fragmentOf('help')} onClick={close}>
          Guides
        </a>
      </div>
      {!letterKeys.value && (
        <p class="notice">Keys without Ctrl, Alt or ⌘ are off in this browser. The page “You” turns them on.</p>
      )}
      {[...groups].map(([group, commands]) => (
        <section key={group}>
          <h3>{group}</h3>
          <dl class="key-list">
            {commands.map(({ id, label, keys }) => (
              <div key={id}>
                <dt>{label}</dt>
                <dd>
                  <Keys keys={keys!} />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Dialog>
  )
}
