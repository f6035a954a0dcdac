// The one question that is asked before something stops work. What is not confirmed does not happen.
import { cell } from "./cell";

export interface Question {
  title: string;
  text: readonly string[]; // what will happen, in sentences
  press: string; // what the button that does it says
}

interface Asked extends Question {
  answer: (isMeant: boolean) => void;
}

/** Open while a person is asked. */
export const asked = cell<Asked | null>(null);

export function confirmed(question: Question): Promise<boolean> {
  asked.get()?.answer(false);
  return new Promise((resolve) => {
    asked.set({
      ...question,
      answer: (isMeant) => {
        asked.set(null);
        resolve(isMeant);
      },
    });
  });
}
