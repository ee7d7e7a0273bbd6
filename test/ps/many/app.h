#ifndef MANY_APP_H
#define MANY_APP_H
#include "dmlc/logging.h"
#include "ps/base.h"
#include "ps/internal/assign_op.h"
#include "ps/internal/customer.h"
#include "ps/internal/env.h"
#include "ps/internal/message.h"
#include "ps/internal/parallel_kv_match.h"
#include "ps/internal/parallel_sort.h"
#include "ps/internal/postoffice.h"
#include "ps/internal/threadsafe_pqueue.h"
#include "ps/internal/threadsafe_queue.h"
#include "ps/internal/utils.h"
#include "ps/internal/van.h"
#include "ps/kv_app.h"
#include "ps/ps.h"
#include "ps/range.h"
#include "ps/sarray.h"
#include "ps/simple_app.h"

// A progress counter that derives from SimpleApp: workers report, the scheduler adds up.
class Progress : public ps::SimpleApp
{
  public:
    explicit Progress(int id);
    ~Progress() override = default;
    int Report(int rows);
    int total() const
    {
        return total_;
    }

  private:
    void OnRequest(const ps::SimpleData &req, ps::SimpleApp *app);
    int total_ = 0;
};

void Serve();
int Train(Progress *progress);
#endif
