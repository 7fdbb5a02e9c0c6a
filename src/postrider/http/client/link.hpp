// An intrusive ring: things that are in a list unlink themselves when they go.
#pragma once

namespace postrider::http {

// A Link is an element, or the head of a list. It leaves its list when destroyed.
struct Link {
  Link() = default;
  ~Link() { unlink(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  bool is_linked() const { return next != this; }  // as a head: not empty
  void unlink() {
    prev->next = next;
    next->prev = prev;
    prev = next = this;
  }
  void insert_before(Link& position) {  // before a head: at the end of its list
    unlink();
    prev = position.prev;
    next = &position;
    prev->next = this;
    next->prev = this;
  }
  // Moves all elements of the list headed by this one to the empty list headed by `other`.
  void move_all_to(Link& other) {
    if (!is_linked()) return;
    other.next = next;
    other.prev = prev;
    next->prev = &other;
    prev->next = &other;
    prev = next = this;
  }

  Link* prev = this;
  Link* next = this;
};

}  // namespace postrider::http
