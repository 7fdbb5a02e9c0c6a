// Lists whose elements contain their own links: joining and leaving a list allocates nothing. An element
// leaves its list when it is destroyed. The tag distinguishes the lists that an element is in at the same
// time.
#pragma once

#include <boost/intrusive/list.hpp>

namespace postrider::http {

template <class Tag>
using ListHook = boost::intrusive::list_base_hook<boost::intrusive::tag<Tag>,
                                                  boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

template <class T, class Tag>
using IntrusiveList = boost::intrusive::list<T, boost::intrusive::base_hook<ListHook<Tag>>,
                                             boost::intrusive::constant_time_size<false>>;

}  // namespace postrider::http
