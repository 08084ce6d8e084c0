const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu

/** A name as a person sees it: NFC, trimmed, without control, invisible and direction characters. */
export const plainValue = (text: string): string => text.normalize('NFC').replace(UNSEEN, '').trim()
