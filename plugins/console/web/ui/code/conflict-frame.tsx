import type { Signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { visibleName } from '../format.js'

interface ConflictFrameProps<T extends string> {
  readonly path: string
  readonly reason?: string | undefined
  /** The sides that there are, and the one that is shown. */
  readonly sides: readonly (readonly [side: T, label: string])[]
  readonly shown: Signal<T>
  /** The shown side, and the choices. */
  readonly children: ComponentChildren
}

/** A file with a conflict: which of its sides is shown. */
export const ConflictFrame = <T extends string>({ path, reason, sides, shown, children }: ConflictFrameProps<T>) => (
  <section class="file-pane" aria-label={visibleName(path)}>
    <div class="row file-head">
      <h2 class="mono grow">{visibleName(path)}</h2>
      <span class="tag bad">conflict</span>
    </div>
    <div class="stack conflict">
      {reason && <p>{reason}</p>}
      <div class="row" role="group" aria-label="Side">
        {sides.map(([side, label]) => (
          <button
            key={side}
            class="button"
            type="button"
            aria-pressed={shown.value === side}
            onClick={() => {
              shown.value = side
            }}
          >
            {label}
          </button>
        ))}
      </div>
      {children}
    </div>
  </section>
)
